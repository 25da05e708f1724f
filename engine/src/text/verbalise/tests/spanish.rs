//! Spanish, row by row. Numbers after CLDR, forms after the Diccionario panhispánico de dudas and the Ortografía (2010) of
//! the Real Academia Española and Fundéu; ambiguous forms in both directions.

use super::*;

/// Pieces of Spanish texts that readings are made of.
pub(super) const PIECES: &[&str] = &[
    " páginas",
    " mil",
    "1.º",
    "2.ª",
    "3er ",
    "15h30",
    " p. m.",
    "p. ej. ",
    "Sr. ",
    "de mayo de ",
    "siglo ",
    "612 345 678",
];

#[test]
fn numbers() {
    check(
        "es-ES",
        SPACED,
        &[
            (
                "Tengo 1 libro, 21 libros y 21 páginas.",
                "Tengo un libro, veintiún libros y veintiuna páginas.",
            ),
            ("200 personas y 200.000 personas", "doscientas personas y doscientas mil personas"),
            (
                "1.234.567 habitantes",
                "un millón doscientos treinta y cuatro mil quinientos sesenta y siete habitantes",
            ),
            (
                "31 mujeres, 31 días, 1 vez y 1 mapa",
                "treinta y una mujeres, treinta y un días, una vez y un mapa",
            ),
            ("un total de 2.000.000 de personas", "un total de dos millones de personas"),
            ("1.000.000 habitantes", "un millón de habitantes"),
            ("Tiene 21 y ella 31.", "Tiene veintiuno y ella treinta y uno."),
            ("Hay 1 aula y 21 aulas.", "Hay un aula y veintiuna aulas."),
            ("1.234,50", "mil doscientos treinta y cuatro coma cincuenta"),
            (
                "3,14 y 0,05 y 2,5 horas",
                "tres coma catorce y cero coma cero cinco y dos coma cinco horas",
            ),
            ("3.14 y Python 3.12.1", "tres punto catorce y Python tres punto doce punto uno"),
            ("Bajó a -5.", "Bajó a menos cinco."),
            ("Subió +3.", "Subió más tres."),
            ("5,3 millones de usuarios", "cinco coma tres millones de usuarios"),
            ("3.500 millones", "tres mil quinientos millones"),
            ("2 mil millones", "dos mil millones"),
            ("en 2026", "en dos mil veintiséis"),
            ("2.021 páginas", "dos mil veintiuna páginas"),
            (
                "12345678901234567890",
                "uno dos tres cuatro cinco seis siete ocho nueve cero uno dos tres cuatro cinco seis siete ocho nueve cero",
            ),
            ("007", "cero cero siete"),
        ],
    );
}

#[test]
fn fractions_and_ordinals() {
    check(
        "es-ES",
        SPACED,
        &[
            ("1/2 taza y 1/2 kg", "media taza y medio kilogramo"),
            ("2/3 y 5/12 del total", "dos tercios y cinco doceavos del total"),
            ("3/4 taza y 3/4 de taza", "tres cuartos de taza y tres cuartos de taza"),
            ("3 1/2 tazas", "tres y media tazas"),
            ("1/4 de hora", "un cuarto de hora"),
            ("½ litro", "medio litro"),
            ("1.º, 2.ª y 21.º", "primero, segunda y vigésimo primero"),
            ("el 1.er piso y el 3er puesto", "el primer piso y el tercer puesto"),
            ("el 3.º piso y el 3.º de la lista", "el tercer piso y el tercero de la lista"),
            ("el 21.º aniversario", "el vigésimo primer aniversario"),
            ("la 1ª vez y el 2º día", "la primera vez y el segundo día"),
            ("el 11.º y la 12.ª", "el undécimo y la duodécima"),
            ("1ro, 2da y 4to", "primero, segunda y cuarto"),
        ],
    );
}

#[test]
fn ranges_scores_and_percent() {
    check(
        "es-ES",
        SPACED,
        &[
            ("páginas 10-15", "páginas diez a quince"),
            ("ganó 3-2", "ganó tres a dos"),
            ("una proporción de 16:9", "una proporción de dieciséis a nueve"),
            ("50 % y 1%", "cincuenta por ciento y uno por ciento"),
            ("el 21 % del total", "el veintiuno por ciento del total"),
            ("5-10 % más", "cinco a diez por ciento más"),
            ("3,5 %", "tres coma cinco por ciento"),
            ("5 ‰", "cinco por mil"),
            ("50/50", "cincuenta cincuenta"),
            ("120/80", "ciento veinte sobre ochenta"),
            ("~20", "aproximadamente veinte"),
        ],
    );
}

#[test]
fn money() {
    check(
        "es-ES",
        SPACED,
        &[
            ("Son 2,50 €.", "Son dos euros con cincuenta céntimos."),
            ("21,01 €", "veintiún euros con un céntimo"),
            ("0,99 €", "noventa y nueve céntimos"),
            ("1 € y 21 €", "un euro y veintiún euros"),
            ("200 £ y 21 £", "doscientas libras y veintiuna libras"),
            ("$5,50", "cinco dólares con cincuenta centavos"),
            (
                "US$ 1.234,50",
                "mil doscientos treinta y cuatro dólares estadounidenses con cincuenta centavos",
            ),
            ("1.000.000 €", "un millón de euros"),
            ("€5 millones", "cinco millones de euros"),
            ("5 M€", "cinco millones de euros"),
            ("20 €/mes", "veinte euros al mes"),
            ("-20 €", "menos veinte euros"),
            ("10-20 €", "diez a veinte euros"),
            ("20 EUR", "veinte euros"),
            ("CHF 20", "veinte francos suizos"),
            ("200 SEK", "doscientas coronas suecas"),
            ("$5 USD", "cinco dólares estadounidenses"),
            ("$20 pesos", "veinte pesos"),
        ],
    );
}

#[test]
fn days() {
    check(
        "es-ES",
        SPACED,
        &[
            ("1 de mayo de 2026", "uno de mayo de dos mil veintiséis"),
            ("el 1.º de mayo", "el primero de mayo"),
            ("01/05/2026", "uno de mayo de dos mil veintiséis"),
            ("15/03/26", "quince de marzo de dos mil veintiséis"),
            ("2026-05-01", "uno de mayo de dos mil veintiséis"),
            ("15.03.2026", "quince de marzo de dos mil veintiséis"),
            ("viernes, 1 de mayo", "viernes, uno de mayo"),
            ("vie. 15 de mayo", "viernes quince de mayo"),
            ("15 de sept. de 2026", "quince de septiembre de dos mil veintiséis"),
            ("mayo de 2026", "mayo de dos mil veintiséis"),
            ("En mayo 5 personas", "En mayo cinco personas"),
            ("El 9/10 y 9/10 de ellos", "El nueve de octubre y nueve décimos de ellos"),
            ("Subió a 3.5.", "Subió a tres punto cinco."),
            ("el mar 5 veces", "el mar cinco veces"),
        ],
    );
}

#[test]
fn times() {
    check(
        "es-ES",
        SPACED,
        &[
            ("a las 15:45", "a las quince y cuarenta y cinco"),
            ("a las 8:30 y a las 8:15", "a las ocho y media y a las ocho y cuarto"),
            ("a la 1:00", "a la una"),
            ("a las 20:30", "a las veinte y treinta"),
            ("a las 15:45 h", "a las quince y cuarenta y cinco"),
            ("a las 15.45 h", "a las quince y cuarenta y cinco"),
            ("a las 15h30", "a las quince y treinta"),
            ("de 9:00 a 17:00", "de nueve a diecisiete"),
            ("9:00-17:00", "nueve a diecisiete"),
            ("a las 3:45 p. m. de hoy", "a las tres y cuarenta y cinco de la tarde de hoy"),
            ("a las 10 a.m.", "a las diez de la mañana."),
            ("a las 9 p. m. Luego", "a las nueve de la noche. Luego"),
            ("13:45:30", "trece horas, cuarenta y cinco minutos y treinta segundos"),
            (
                "2026-11-29T15:45:00Z",
                "veintinueve de noviembre de dos mil veintiséis quince y cuarenta y cinco U T C",
            ),
        ],
    );
}

#[test]
fn measures() {
    check(
        "es-ES",
        SPACED,
        &[
            ("5 km y 1 km", "cinco kilómetros y un kilómetro"),
            ("100 km/h", "cien kilómetros por hora"),
            ("20 °C y -5 °C", "veinte grados Celsius y menos cinco grados Celsius"),
            ("21 ºC", "veintiún grados Celsius"),
            ("5 m²", "cinco metros cuadrados"),
            ("16 GB de memoria", "dieciséis gigabytes de memoria"),
            ("5-10 kg", "cinco a diez kilogramos"),
            ("21 ha", "veintiuna hectáreas"),
            ("1 h y 30 min", "una hora y treinta minutos"),
            (
                "40,7128° N, 74,006° O",
                "cuarenta coma setenta y uno veintiocho grados norte, setenta y cuatro coma cero cero seis grados oeste",
            ),
            ("100 000 m", "cien mil metros"),
            ("1.000.000 km", "un millón de kilómetros"),
            ("30x20 cm", "treinta por veinte centímetros"),
        ],
    );
}

#[test]
fn telephones_cards_and_machines() {
    check(
        "es-ES",
        SPACED,
        &[
            (
                "+34 612 345 678",
                "más treinta y cuatro, seis uno dos, tres cuatro cinco, seis siete ocho",
            ),
            ("612 345 678", "seis uno dos, tres cuatro cinco, seis siete ocho"),
            (
                "612 345 678 habitantes",
                "seiscientos doce millones trescientos cuarenta y cinco mil seiscientos setenta y ocho habitantes",
            ),
            ("91 123 45 67", "noventa y uno, uno dos tres, cuarenta y cinco, sesenta y siete"),
            ("(555) 123-4567", "cinco cinco cinco, uno dos tres, cuatro cinco seis siete"),
            (
                "la tarjeta 4111 1111 1111 1111",
                "la tarjeta cuatro uno uno uno, uno uno uno uno, uno uno uno uno, uno uno uno uno",
            ),
            ("el pedido 48213977", "el pedido cuatro ocho dos uno tres nueve siete siete"),
            ("código postal 28013", "código postal dos ocho cero uno tres"),
            ("28013 personas", "veintiocho mil trece personas"),
            ("192.168.0.1", "uno nueve dos punto uno seis ocho punto cero punto uno"),
            ("v2.1.3", "versión dos punto uno punto tres"),
        ],
    );
}

#[test]
fn names_with_digits() {
    check(
        "es-ES",
        SPACED,
        &[
            ("una H100 y A4", "una H cien y A cuatro"),
            ("COVID-19", "COVID diecinueve"),
            ("GPT-4o", "G P T cuatro O"),
            ("B2B y MP3", "B dos B y M P tres"),
            ("el A380", "el A trescientos ochenta"),
            ("ISO-9001", "I S O nueve mil uno"),
            ("mi_archivo", "mi archivo"),
        ],
    );
}

#[test]
fn addresses() {
    check(
        "es-ES",
        SPACED,
        &[
            ("test.user@example.com", "test punto user arroba example punto com"),
            ("ver https://example.com/ayuda", "ver example punto com barra ayuda"),
            ("https://example.com", "H T T P S dos puntos barra barra example punto com"),
            ("La pza. mayor, esq. norte", "La plaza mayor, esquina norte"),
            ("1/10.000 y 1/1.000.000", "un diezmilésimo y un millonésimo"),
            ("www.rae.es", "W W W punto R A E punto es"),
            ("informe.pdf", "informe punto P D F"),
            ("#LunesDeMotivación", "hashtag Lunes De Motivación"),
            ("@ana_perez42", "arroba ana perez cuarenta y dos"),
            ("el n.º 5 y el nº 6", "el número cinco y el número seis"),
            ("#1", "número uno"),
        ],
    );
}

#[test]
fn short_forms() {
    check(
        "es-ES",
        SPACED,
        &[
            ("El Sr. López y la Sra. Díaz", "El señor López y la señora Díaz"),
            ("Ud. sabe", "usted sabe"),
            ("con Uds. y con D.ª Ana", "con ustedes y con doña Ana"),
            ("D. Juan y el Dr. Ruiz", "don Juan y el doctor Ruiz"),
            ("p. ej. pan", "por ejemplo pan"),
            ("en EE. UU. y en EE.UU.", "en Estados Unidos y en Estados Unidos."),
            ("en EE. UU. Luego", "en Estados Unidos. Luego"),
            ("manzanas, peras, etc.", "manzanas, peras, etcétera."),
            ("pan, etc. y más", "pan, etcétera y más"),
            ("en el 44 a. C.", "en el cuarenta y cuatro antes de Cristo."),
            ("Av. Libertador 123", "avenida Libertador ciento veintitrés"),
            ("C/ Mayor, 5", "calle Mayor, cinco"),
            ("pág. 12 y art. 3", "página doce y artículo tres"),
            ("J. R. Jiménez", "J R Jiménez"),
            ("aprox. 5 kg", "aproximadamente cinco kilogramos"),
        ],
    );
}

#[test]
fn letters_and_words_in_capitals() {
    check(
        "es-ES",
        Conventions::DEFAULT,
        &[
            ("la ONU y la OTAN", "la Onu y la Otan"),
            ("el FBI y el IVA", "el FBI y el Iva"),
            ("mi DNI", "mi DNI"),
            ("NO ENTRAR", "NO ENTRAR"),
            ("la UE", "la UE"),
            ("el CEO", "el CEO"),
        ],
    );
}

#[test]
fn roman_numerals() {
    check(
        "es-ES",
        SPACED,
        &[
            ("Felipe VI y Alfonso XIII", "Felipe sexto y Alfonso trece"),
            ("Isabel II de España", "Isabel segunda de España"),
            ("Carlos I", "Carlos primero"),
            ("Juan Pablo II", "Juan Pablo segundo"),
            ("siglo XXI y siglo V", "siglo veintiuno y siglo quinto"),
            ("capítulo XII", "capítulo doce"),
            ("el XX aniversario", "el vigésimo aniversario"),
            ("el III Congreso y la V Feria", "el tercer Congreso y la quinta Feria"),
            ("la II Guerra Mundial", "la segunda Guerra Mundial"),
            ("la UE y un CD", "la U E y un C D"),
        ],
    );
}

#[test]
fn signs() {
    check(
        "es-ES",
        SPACED,
        &[
            ("R&D y Tom & Ana", "R y D y Tom y Ana"),
            ("§ 5", "sección cinco"),
            ("2 + 2 = 4", "dos más dos igual a cuatro"),
            ("10 - 4 = 6", "diez menos cuatro igual a seis"),
            ("3 × 4", "tres por cuatro"),
            ("x² y 2^10", "x al cuadrado y dos elevado a diez"),
            ("a ≤ b", "a menor o igual que b"),
            ("¿Cuánto es 5 + 3?", "¿Cuánto es cinco más tres?"),
            ("¡Son 21!", "¡Son veintiuno!"),
            ("y/o", "y o"),
            ("Espera... ahora", "Espera... ahora"),
            ("uno — dos", "uno — dos"),
            ("C++", "C más más"),
        ],
    );
}

#[test]
fn america() {
    check(
        "es-MX",
        SPACED,
        &[
            ("$1,234.50", "mil doscientos treinta y cuatro pesos con cincuenta centavos"),
            ("$20 MXN y US$20", "veinte pesos mexicanos y veinte dólares estadounidenses"),
            ("3.14", "tres punto catorce"),
            (
                "1,234,567 personas",
                "un millón doscientas treinta y cuatro mil quinientas sesenta y siete personas",
            ),
            ("el 1 de mayo de 2026", "el primero de mayo de dos mil veintiséis"),
            ("a las 3:45 pm", "a las tres y cuarenta y cinco de la tarde"),
            ("2.5 millones", "dos punto cinco millones"),
        ],
    );
}

#[test]
fn more_times_and_numbers() {
    check(
        "es-ES",
        SPACED,
        &[
            ("a las 15:00 horas", "a las quince horas"),
            ("de 9 h a 17 h", "de nueve horas a diecisiete horas"),
            ("9h-17h", "nueve a diecisiete"),
            ("1.000.000.000 de euros", "mil millones de euros"),
            (
                "los 192.168.100.200 y 1.234.567.890",
                "los uno nueve dos punto uno seis ocho punto uno cero cero punto dos cero cero y mil doscientos treinta y cuatro millones quinientos sesenta y siete mil ochocientos noventa",
            ),
        ],
    );
}

#[test]
fn what_agents_write() {
    check(
        "es-ES",
        SPACED,
        &[
            ("1 h 30 min", "una hora y treinta minutos"),
            ("cap. III y vol. II", "capítulo tres y volumen dos"),
            ("Art. II", "artículo dos"),
            ("1 1/2 kg", "uno y medio kilogramos"),
            ("-1/2", "menos un medio"),
            ("3/1000", "tres milésimos"),
            ("los '90 y los 90s", "los noventa y los noventa"),
            ("21-22 personas", "veintiuna a veintidós personas"),
            ("10x más rápido", "diez veces más rápido"),
            ("2 x 3", "dos por tres"),
            ("el s. XXI", "el siglo veintiuno"),
            ("el Cap. Pérez", "el capitán Pérez"),
            ("cap. I", "capítulo uno"),
            ("1,01 €", "un euro con un céntimo"),
            ("el siglo V a. C.", "el siglo quinto antes de Cristo."),
            ("2020-2021", "dos mil veinte a dos mil veintiuno"),
            ("la década de 1990", "la década de mil novecientos noventa"),
            ("15.000.000 €", "quince millones de euros"),
            ("500 mil euros", "quinientos mil euros"),
            ("25.ª edición", "vigésima quinta edición"),
            ("juan.perez@empresa.es", "juan punto perez arroba empresa punto es"),
            ("1001 noches", "mil una noches"),
            ("perdieron 3-0 ante", "perdieron tres a cero ante"),
            ("Avda. América", "avenida América"),
            ("H2O", "H dos O"),
            ("M-30", "M treinta"),
            ("El 31 de dic. de 2026", "El treinta y uno de diciembre de dos mil veintiséis"),
        ],
    );
}

#[test]
fn what_agents_write_in_a_hurry() {
    check(
        "es-ES",
        SPACED,
        &[
            (
                "mayo 5, 2026 y mayo 5 de 2026",
                "cinco de mayo de dos mil veintiséis y cinco de mayo de dos mil veintiséis",
            ),
            ("03/2026 y 3/2026", "marzo de dos mil veintiséis y tres barra dos mil veintiséis"),
            ("Ley 39/2015", "Ley treinta y nueve barra dos mil quince"),
            (
                "5 de enero del 2000 a las 12:30 a. m.",
                "cinco de enero del dos mil a las doce y media de la noche.",
            ),
            (
                "a las 12:00 p. m. y a las 3 a. m.",
                "a las doce del mediodía y a las tres de la mañana.",
            ),
            ("a las 11:30 a. m. (hora local)", "a las once y media de la mañana (hora local)"),
            (
                "ES91 2100 0418 4502 0005 1332",
                "E S noventa y uno dos uno cero cero, cero cuatro uno ocho, cuatro cinco cero dos, cero cero cero cinco, uno tres tres dos",
            ),
            ("3 € c/u", "tres euros cada uno"),
            ("siglo quinto, siglo V y siglo XXI", "siglo quinto, siglo quinto y siglo veintiuno"),
            ("5 €/kg y 10 €/h", "cinco euros el kilo y diez euros por hora"),
            ("nº5 y n°5", "número cinco y número cinco"),
            ("MMXX", "dos mil veinte"),
            ("5 Kg a 100 Km/h", "cinco kilogramos a cien kilómetros por hora"),
            ("3 x 4 m", "tres por cuatro metros"),
            ("1ero", "primero"),
            ("ene/2026", "enero de dos mil veintiséis"),
            (
                "opción 1 disponible y 1 opción disponible",
                "opción uno disponible y una opción disponible",
            ),
            ("la mesa 21 libre", "la mesa veintiuno libre"),
            ("Pulse 1 vez", "Pulse una vez"),
            ("1-2 días y 1-2 horas", "uno a dos días y una a dos horas"),
            ("1 lunes, 1 mes y 1 virus", "un lunes, un mes y un virus"),
            ("hasta el km 25 y 5 km", "hasta el kilómetro veinticinco y cinco kilómetros"),
            ("+/- 5", "más menos cinco"),
            ("Cap. IV y el Cap. Pérez", "capítulo cuatro y el capitán Pérez"),
        ],
    );
}

#[test]
fn bare_lines() {
    check(
        "es-ES",
        SPACED,
        &[
            ("1/13", "un treceavo"),
            ("1/20", "un veinteavo"),
            ("18/20", "dieciocho sobre veinte"),
            ("1/300", "un tricentésimo"),
            ("3,1416", "tres coma catorce dieciséis"),
            ("2,0416", "dos coma cero cuatro uno seis"),
            ("08 h", "ocho"),
            ("No 5 sino 6", "No cinco sino seis"),
            ("siglo xix y año mcmxc", "siglo diecinueve y año mil novecientos noventa"),
            ("el siglo y el año mi", "el siglo y el año mi"),
            ("abril 30", "treinta de abril"),
            (
                "en abril 30 personas y en abril 30 %",
                "en abril treinta personas y en abril treinta por ciento",
            ),
            ("3 2/5 m", "tres y dos quintos de metro"),
            ("a las 13.30", "a las trece y treinta"),
            ("las 2.50 €", "las dos euros con cincuenta céntimos"),
            ("7.15 p.m.", "siete y cuarto de la tarde."),
            ("7.15 a.m", "siete y cuarto de la mañana"),
            ("8:00 GMT-3", "ocho G M T menos tres"),
            ("3,5/s", "tres coma cinco por segundo"),
            ("$0,5", "cincuenta centavos"),
            ("5 usd", "cinco dólares estadounidenses"),
            ("20 crc", "veinte colones costarricenses"),
            ("3 ₧", "tres pesetas"),
            ("2222-3344", "dos dos dos dos, tres tres cuatro cuatro"),
            ("1000-2000", "mil a dos mil"),
            ("el dr. ruiz", "el doctor ruiz"),
            ("Mayor esq. Toledo", "Mayor esquina Toledo"),
            ("piso 123A", "piso ciento veintitrés A"),
            ("la tarjeta termina en 4417", "la tarjeta termina en cuatro cuatro uno siete"),
            ("código KX4417", "código K X cuatro cuatro uno siete"),
            ("XIV", "catorce"),
            ("IX", "nueve"),
        ],
    );
}
