//! Italian, row by row. Numbers after CLDR, forms after the Accademia della Crusca and the Treccani; ambiguous forms in both
//! directions.

use super::*;

/// Pieces of Italian texts that readings are made of.
pub(super) const PIECES: &[&str] = &[
    "l'",
    "1 ora",
    "1 studente",
    "2° ",
    "n° ",
    "alle 15.45",
    "1° maggio",
    " mln",
    "sig.ra ",
    "secolo ",
    "XXI secolo",
    "20 mila",
];

#[test]
fn numbers() {
    check(
        "it-IT",
        SPACED,
        &[
            ("Ho 1 libro, 21 libri e 21 pagine.", "Ho un libro, ventuno libri e ventuno pagine."),
            ("1 persona, 1 studente e 1 amica", "una persona, uno studente e un'amica"),
            ("Ne ho 1.", "Ne ho uno."),
            ("200 persone e 200.000 persone", "duecento persone e duecentomila persone"),
            (
                "1.234.567 abitanti",
                "un milione duecentotrentaquattromilacinquecentosessantasette abitanti",
            ),
            ("23 giorni e 28 anni", "ventitré giorni e ventotto anni"),
            ("1.000.000 abitanti", "un milione di abitanti"),
            ("2.000.000 di persone", "due milioni di persone"),
            ("1.234,50", "milleduecentotrentaquattro virgola cinquanta"),
            (
                "3,14 e 0,05 e 2,5 ore",
                "tre virgola quattordici e zero virgola zero cinque e due virgola cinque ore",
            ),
            ("3.14 e Python 3.12.1", "tre punto quattordici e Python tre punto dodici punto uno"),
            ("È sceso a -5.", "È sceso a meno cinque."),
            ("È salito +3.", "È salito più tre."),
            ("5,3 milioni di utenti", "cinque virgola tre milioni di utenti"),
            ("5 mln di utenti", "cinque milioni di utenti"),
            ("nel 2026", "nel duemilaventisei"),
            ("nel 1984", "nel millenovecentottantaquattro"),
            (
                "12345678901234567890",
                "uno due tre quattro cinque sei sette otto nove zero uno due tre quattro cinque sei sette otto nove zero",
            ),
            ("007", "zero zero sette"),
        ],
    );
}

#[test]
fn fractions_and_ordinals() {
    check(
        "it-IT",
        SPACED,
        &[
            ("1/2 tazza e 1/2 kg", "mezza tazza e mezzo chilogrammo"),
            ("2/3 e 5/12 del totale", "due terzi e cinque dodicesimi del totale"),
            ("3/4 tazza e 3/4 di tazza", "tre quarti di tazza e tre quarti di tazza"),
            ("2 1/2 tazze", "due e mezza tazze"),
            ("3 1/2", "tre e mezzo"),
            ("½ litro", "mezzo litro"),
            ("1º, 2ª e 21º", "primo, seconda e ventunesimo"),
            ("il 2° piano e la 3ª volta", "il secondo piano e la terza volta"),
            ("il 1° della lista", "il primo della lista"),
            ("la 3a edizione", "la terza edizione"),
        ],
    );
}

#[test]
fn ranges_scores_and_percent() {
    check(
        "it-IT",
        SPACED,
        &[
            ("pagine 10-15", "pagine dieci a quindici"),
            ("ha vinto 3-2", "ha vinto tre a due"),
            ("un rapporto di 16:9", "un rapporto di sedici a nove"),
            ("50% e 1%", "cinquanta per cento e uno per cento"),
            ("il 21% del totale", "il ventuno per cento del totale"),
            ("5-10% in più", "cinque a dieci per cento in più"),
            ("3,5 %", "tre virgola cinque per cento"),
            ("50/50", "cinquanta cinquanta"),
            ("120/80", "centoventi su ottanta"),
            ("~20", "circa venti"),
        ],
    );
}

#[test]
fn money() {
    check(
        "it-IT",
        SPACED,
        &[
            ("Sono 2,50 €.", "Sono due euro e cinquanta centesimi."),
            ("€ 1.234,56", "milleduecentotrentaquattro euro e cinquantasei centesimi"),
            ("1 € e 0,99 €", "un euro e novantanove centesimi"),
            ("21,01 €", "ventuno euro e un centesimo"),
            ("1.000.000 €", "un milione di euro"),
            ("€ 5 milioni", "cinque milioni di euro"),
            ("5 mln €", "cinque milioni di euro"),
            ("200 £ e 1 £", "duecento sterline e una sterlina"),
            ("$5,50", "cinque dollari e cinquanta centesimi"),
            ("20 €/mese", "venti euro al mese"),
            ("-20 €", "meno venti euro"),
            ("10-20 €", "dieci a venti euro"),
            ("20 EUR", "venti euro"),
            ("CHF 20", "venti franchi svizzeri"),
            ("200 SEK", "duecento corone svedesi"),
        ],
    );
}

#[test]
fn days() {
    check(
        "it-IT",
        SPACED,
        &[
            ("il 1° maggio 2026", "il primo maggio duemilaventisei"),
            ("1 maggio", "primo maggio"),
            ("01/05/2026", "primo maggio duemilaventisei"),
            ("15/03/26", "quindici marzo duemilaventisei"),
            ("2026-05-02", "due maggio duemilaventisei"),
            ("15.03.2026", "quindici marzo duemilaventisei"),
            ("venerdì 1 maggio", "venerdì primo maggio"),
            ("ven. 15 maggio", "venerdì quindici maggio"),
            ("15 set. 2026", "quindici settembre duemilaventisei"),
            ("maggio 2026", "maggio duemilaventisei"),
            ("A maggio 5 persone", "A maggio cinque persone"),
            ("il 9/10 e 9/10 di loro", "il nove ottobre e nove decimi di loro"),
            ("È salito a 3.5.", "È salito a tre punto cinque."),
            ("l'8 marzo", "l'otto marzo"),
        ],
    );
}

#[test]
fn times() {
    check(
        "it-IT",
        SPACED,
        &[
            ("alle 15:45", "alle quindici e quarantacinque"),
            ("alle 8:30 e alle 8:15", "alle otto e mezza e alle otto e un quarto"),
            ("all'1:00", "all'una"),
            ("alle ore 15.45", "alle ore quindici e quarantacinque"),
            ("dalle 9.00 alle 17.00", "dalle nove alle diciassette"),
            ("costa 15.45 euro", "costa quindici punto quarantacinque euro"),
            ("alle 15:45:30", "alle quindici, quarantacinque minuti e trenta secondi"),
            ("9:00-17:00", "nove a diciassette"),
            ("alle 3:45 p.m. di oggi", "alle tre e quarantacinque del pomeriggio di oggi"),
            ("alle 10 a.m.", "alle dieci del mattino."),
            ("15 h e 1 h", "quindici ore e un'ora"),
            (
                "2026-11-29T15:45:00Z",
                "ventinove novembre duemilaventisei quindici e quarantacinque U T C",
            ),
        ],
    );
}

#[test]
fn measures() {
    check(
        "it-IT",
        SPACED,
        &[
            ("5 km e 1 km", "cinque chilometri e un chilometro"),
            ("1 ora e 30 min", "un'ora e trenta minuti"),
            ("100 km/h", "cento chilometri orari"),
            ("20 °C e -5 °C", "venti gradi Celsius e meno cinque gradi Celsius"),
            ("fuori ci sono 30°", "fuori ci sono trenta gradi"),
            ("5 m²", "cinque metri quadrati"),
            ("80 mq", "ottanta metri quadrati"),
            ("16 GB di memoria", "sedici gigabyte di memoria"),
            ("5-10 kg", "cinque a dieci chilogrammi"),
            (
                "40,7128° N, 74,006° O",
                "quaranta virgola sette uno due otto gradi nord, settantaquattro virgola zero zero sei gradi ovest",
            ),
            ("100.000 m", "centomila metri"),
            ("1.000.000 km", "un milione di chilometri"),
            ("30x20 cm", "trenta per venti centimetri"),
        ],
    );
}

#[test]
fn telephones_cards_and_machines() {
    check(
        "it-IT",
        SPACED,
        &[
            (
                "+39 333 123 4567",
                "più tre nove, tre tre tre, uno due tre, quattro cinque sei sette",
            ),
            ("333 123 4567", "tre tre tre, uno due tre, quattro cinque sei sette"),
            ("06 1234 5678", "zero sei, uno due tre quattro, cinque sei sette otto"),
            ("333 1234567", "tre tre tre, uno due tre quattro cinque sei sette"),
            (
                "la carta 4111 1111 1111 1111",
                "la carta quattro uno uno uno, uno uno uno uno, uno uno uno uno, uno uno uno uno",
            ),
            ("l'ordine 48213977", "l'ordine quattro otto due uno tre nove sette sette"),
            ("CAP 00184", "CAP zero zero uno otto quattro"),
            ("192.168.0.1", "uno nove due punto uno sei otto punto zero punto uno"),
            ("v2.1.3", "versione due punto uno punto tre"),
        ],
    );
}

#[test]
fn names_with_digits() {
    check(
        "it-IT",
        SPACED,
        &[
            ("una H100 e A4", "una H cento e A quattro"),
            ("COVID-19", "COVID diciannove"),
            ("GPT-4o", "G P T quattro O"),
            ("B2B e MP3", "B due B e M P tre"),
            ("l'A380", "l'A trecentottanta"),
            ("ISO-9001", "I S O novemilauno"),
            ("il_mio_file", "il mio file"),
        ],
    );
}

#[test]
fn addresses() {
    check(
        "it-IT",
        SPACED,
        &[
            ("test.user@example.com", "test punto user chiocciola example punto com"),
            ("vedi https://example.com/aiuto", "vedi example punto com slash aiuto"),
            (
                "https://example.com/a47",
                "H T T P S due punti slash slash example punto com slash A quattro sette",
            ),
            ("example.com/ugo!si", "example punto com slash ugo punto esclamativo si"),
            ("www.rai.it", "W W W punto rai punto it"),
            ("relazione.pdf", "relazione punto P D F"),
            ("#BuonLunedì", "hashtag Buon Lunedì"),
            ("@anna_rossi42", "chiocciola anna rossi quarantadue"),
            ("il n. 5 e il n° 6", "il numero cinque e il numero sei"),
            ("#1", "numero uno"),
        ],
    );
}

#[test]
fn short_forms() {
    check(
        "it-IT",
        SPACED,
        &[
            ("Il sig. Rossi e la sig.ra Bianchi", "Il signor Rossi e la signora Bianchi"),
            ("Dott. Verdi e dott.ssa Neri", "dottor Verdi e dottoressa Neri"),
            ("il prof. Ferri", "il professor Ferri"),
            ("l'avv. Conti", "l'avvocato Conti"),
            ("mele, pere, ecc.", "mele, pere, eccetera."),
            ("pane, ecc. e altro", "pane, eccetera e altro"),
            ("p. es. pane", "per esempio pane"),
            ("ad es. pane", "ad esempio pane"),
            ("nel 44 a.C.", "nel quarantaquattro avanti Cristo."),
            ("pag. 12 e art. 3", "pagina dodici e articolo tre"),
            ("P.zza Navona", "Piazza Navona"),
            ("J. K. Rowling", "J K Rowling"),
            ("ca. 5 kg", "circa cinque chilogrammi"),
            ("max. 5", "massimo cinque"),
        ],
    );
}

#[test]
fn letters_and_words_in_capitals() {
    check(
        "it-IT",
        Conventions::DEFAULT,
        &[
            ("l'ONU e la NATO", "l'Onu e la Nato"),
            ("la FBI e l'IVA", "la FBI e l'Iva"),
            ("il PDF", "il PDF"),
            ("VIETATO FUMARE", "VIETATO FUMARE"),
            ("la UE", "la UE"),
            ("il CEO", "il CEO"),
        ],
    );
}

#[test]
fn roman_numerals() {
    check(
        "it-IT",
        SPACED,
        &[
            ("Luigi XIV e Elisabetta II", "Luigi quattordicesimo e Elisabetta seconda"),
            ("Vittorio Emanuele III", "Vittorio Emanuele terzo"),
            ("Papa Giovanni XXIII", "Papa Giovanni ventitreesimo"),
            ("il XXI secolo", "il ventunesimo secolo"),
            ("il secolo XX", "il secolo ventesimo"),
            ("capitolo XII", "capitolo dodici"),
            ("il III Congresso", "il terzo Congresso"),
            ("la II guerra mondiale", "la seconda guerra mondiale"),
            ("la UE e un CD", "la U E e un C D"),
        ],
    );
}

#[test]
fn signs() {
    check(
        "it-IT",
        SPACED,
        &[
            ("R&S e Tom & Anna", "R e S e Tom e Anna"),
            ("§ 5", "paragrafo cinque"),
            ("2 + 2 = 4", "due più due uguale quattro"),
            ("10 - 4 = 6", "dieci meno quattro uguale sei"),
            ("3 × 4", "tre per quattro"),
            ("x² e 2^10", "x al quadrato e due elevato a dieci"),
            ("a ≤ b", "a minore o uguale a b"),
            ("e/o", "e o"),
            ("Aspetta... ora", "Aspetta... ora"),
            ("uno — due", "uno — due"),
            ("C++", "C più più"),
        ],
    );
}

#[test]
fn what_agents_write() {
    check(
        "it-IT",
        SPACED,
        &[
            ("gli anni '80 e '90", "gli anni ottanta e novanta"),
            ("nel '68", "nel sessantotto"),
            ("nel '08", "nel zero otto"),
            ("1h 30min", "un'ora e trenta minuti"),
            ("1 h 30 min", "un'ora trenta minuti"),
            ("cap. III", "capitolo tre"),
            ("vol. I", "volume uno"),
            ("l'1 maggio", "l'uno maggio"),
            ("20mila euro", "ventimila euro"),
            ("100 mila persone", "centomila persone"),
            ("20mila €", "ventimila euro"),
            ("sec. XIX", "secolo diciannovesimo"),
            ("V secolo a.C.", "quinto secolo avanti Cristo."),
            ("3x più veloce", "tre volte più veloce"),
            ("1 h", "un'ora"),
            ("dell'1%", "dell'uno per cento"),
            ("l'80%", "l'ottanta per cento"),
            ("lun-ven", "lunedì a venerdì"),
            ("C.so Italia 5", "Corso Italia cinque"),
            ("S.p.A.", "Società per azioni."),
            ("Gent.ma Sig.ra Rossi", "Gentilissima Signora Rossi"),
            (
                "P.IVA 01234567890",
                "Partita Iva zero uno due tre quattro cinque sei sette otto nove zero",
            ),
            ("02 1234567", "zero due, uno due tre quattro cinque sei sette"),
            ("2° classificato", "secondo classificato"),
            ("5ª B", "quinta B"),
            ("del 5/3/26", "del cinque marzo duemilaventisei"),
            ("1001 notti", "milleuno notti"),
            ("30° all'ombra", "trenta gradi all'ombra"),
            ("nel '900", "nel novecento"),
            ("la legge 104/1992", "la legge centoquattro barra millenovecentonovantadue"),
            ("03/2026", "marzo duemilaventisei"),
            ("Gent.le cliente", "Gentile cliente"),
            ("costa 3 mln di €", "costa tre milioni di euro"),
            ("10 €/h e 5 €/kg", "dieci euro all'ora e cinque euro al chilo"),
            ("n°5", "numero cinque"),
            ("gen/2026", "gennaio duemilaventisei"),
            ("MMXX", "duemilaventi"),
            ("3 x 4 m", "tre per quattro metri"),
            ("opzione 1 valida e 1 opzione valida", "opzione uno valida e un'opzione valida"),
            ("1 t e XIV sec.", "una tonnellata e quattordicesimo secolo."),
            ("prema 1 volta", "prema una volta"),
            ("1-2 giorni e 1-2 ore", "uno a due giorni e una a due ore"),
            ("1 taxi e 1 sci", "un taxi e uno sci"),
            ("al km 25", "al chilometro venticinque"),
            ("L'ASL e l'INPS", "L'ASL e l'INPS"),
            ("Via XX Settembre e via IV Novembre", "Via venti Settembre e via quattro Novembre"),
            ("8.30-17.30", "otto e mezza a diciassette e trenta"),
            ("alle 7.30", "alle sette e mezza"),
            ("Cap. IV e cap. Rossi", "capitolo quattro e capitano Rossi"),
        ],
    );
}

#[test]
fn bare_lines() {
    check(
        "it-IT",
        SPACED,
        &[
            ("4,2 £", "quattro sterline e venti pence"),
            ("1 eur", "un euro"),
            ("5 km/s", "cinque chilometri al secondo"),
            ("12 d", "dodici giorni"),
            ("il dip. di Fisica", "il dipartimento di Fisica"),
            ("avv. verdi", "avvocato verdi"),
            ("1/20", "un ventesimo"),
            ("28/30", "ventotto su trenta"),
            ("interno 12A", "interno dodici A"),
            ("7.15 p.m.", "sette e un quarto di sera."),
            ("la carta termina con 4417", "la carta termina con quattro quattro uno sette"),
            ("example.com/a&b", "example punto com slash A e commerciale B"),
        ],
    );
}
