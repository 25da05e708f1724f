//! Dutch, row by row. Numbers after CLDR and the Groene Boekje; hours, parts, titles and short forms after Onze Taal; ambiguous
//! forms in both directions.

use super::*;

/// What random texts are made of.
pub(super) const PIECES: &[&str] = &[
    "dhr. ",
    "mevr. ",
    "15.45 uur",
    "15u30",
    " u. ",
    "XXe ",
    "2e ",
    "8ste",
    "18-jarige",
    "2x ",
    "'90",
    "1012 AB",
    "€ 5,-",
    "3-5-2026",
    "Jan. ",
    "t/m ",
    "d.w.z. ",
    "Willem II",
    " mln. ",
];

#[test]
fn numbers() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            ("Ik heb 3 katten en 1 hond.", "Ik heb drie katten en één hond."),
            (
                "1 234 567 mensen, 1.234.567 mensen",
                "een miljoen tweehonderdvierendertigduizend vijfhonderdzevenenzestig mensen, een miljoen tweehonderdvierendertigduizend vijfhonderdzevenenzestig mensen",
            ),
            ("Pi is 3,14 en -5 is koud.", "Pi is drie komma veertien en min vijf is koud."),
            (
                "0,05 en 2,75 en 3,14159 en 1,5",
                "nul komma nul vijf en twee komma vijfenzeventig en drie komma één vier één vijf negen en één komma vijf",
            ),
            (
                "1500 mensen, 1550 mensen",
                "vijftienhonderd mensen, duizend vijfhonderdvijftig mensen",
            ),
            (
                "22, 101, 1000, 1100, 2345, 12.345",
                "tweeëntwintig, honderdeen, duizend, elfhonderd, tweeduizend driehonderdvijfenveertig, twaalfduizend driehonderdvijfenveertig",
            ),
            ("10-15 stuks, 10–15 stuks", "tien tot vijftien stuks, tien tot vijftien stuks"),
            (
                "50% korting, 5-10 % meer, 12,5%",
                "vijftig procent korting, vijf tot tien procent meer, twaalf komma vijf procent",
            ),
            (
                "5 ± 2, 2 + 2 = 4, 10 - 4 = 6, 3 × 4, x²",
                "vijf plus of min twee, twee plus twee is vier, tien min vier is zes, drie keer vier, x kwadraat",
            ),
            (
                "5 x 3 = 15, 3 m x 4 m, 1920x1080",
                "vijf keer drie is vijftien, drie meter bij vier meter, duizend negenhonderdtwintig bij duizend tachtig",
            ),
            ("1,5e-3", "één komma vijf keer tien tot de macht min drie"),
            ("007", "nul nul zeven"),
            (
                "versie 3.12, versie 3.12.1",
                "versie drie punt twaalf, versie drie punt twaalf punt één",
            ),
            (
                "5,3 miljoen inwoners, 17,9 mln. mensen",
                "vijf komma drie miljoen inwoners, zeventien komma negen miljoen mensen",
            ),
            ("Het waren er 5 mln. Daarna niets.", "Het waren er vijf miljoen. Daarna niets."),
        ],
    );
}

#[test]
fn fractions_and_ratios() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            ("1/2, 1/3, 3/4, 2/3, 2/5", "een half, een derde, drie kwart, twee derde, twee vijfde"),
            (
                "1 1/2, 2½ uur, 4 1/2, 2 1/4",
                "anderhalf, tweeënhalf uur, vierenhalf, twee en een kwart",
            ),
            (
                "17/20, 120/80, 24/7",
                "zeventien twintigste, honderdtwintig over tachtig, vierentwintig zeven",
            ),
            ("Ajax-PSV 3-1, 1-3", "Ajax-PSV drie tegen één, één tot drie"),
            (
                "won met 3-2, de stand is 3-2, een verhouding van 16:9",
                "won met drie tegen twee, de stand is drie tegen twee, een verhouding van zestien tegen negen",
            ),
        ],
    );
}

#[test]
fn ordinals_and_numerals() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            (
                "de 1e, de 2de, de 3e, de 8ste, de 20ste, de 101e",
                "de eerste, de tweede, de derde, de achtste, de twintigste, de honderdeerste",
            ),
            (
                "de 20e eeuw, de XXe eeuw, de IIe",
                "de twintigste eeuw, de twintigste eeuw, de tweede",
            ),
            (
                "Willem II, Lodewijk XIV, Karel V",
                "Willem de Tweede, Lodewijk de Veertiende, Karel de Vijfde",
            ),
            ("hoofdstuk IV, deel II", "hoofdstuk vier, deel twee"),
            (
                "18-jarige, een 3-daagse reis, 2x per dag, 1x",
                "achttienjarige, een driedaagse reis, twee keer per dag, één keer",
            ),
        ],
    );
}

#[test]
fn years_and_counts() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            (
                "in 1985, 1999 was het.",
                "in negentienvijfentachtig, negentiennegenennegentig was het.",
            ),
            (
                "1985 euro, 1985 mensen",
                "duizend negenhonderdvijfentachtig euro, duizend negenhonderdvijfentachtig mensen",
            ),
            (
                "in 1648, in 1900, in 1905, in 2000, in 2026",
                "in zestienachtenveertig, in negentienhonderd, in negentienvijf, in tweeduizend, in tweeduizend zesentwintig",
            ),
            (
                "1940-1945, van 1940 tot 1945",
                "negentienveertig tot negentienvijfenveertig, van negentienveertig tot negentienvijfenveertig",
            ),
            ("de jaren '90, de jaren 90", "de jaren negentig, de jaren negentig"),
            ("1985 waren er", "negentienvijfentachtig waren er"),
        ],
    );
}

#[test]
fn money() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            (
                "€ 1.234,50 en 1.234,50 euro",
                "duizend tweehonderdvierendertig euro vijftig en duizend tweehonderdvierendertig euro vijftig",
            ),
            (
                "€ 12,05, € 0,99, € 1, € 5,00",
                "twaalf euro vijf, negenennegentig cent, één euro, vijf euro",
            ),
            ("€ 5,-, € 5,–", "vijf euro, vijf euro"),
            (
                "€ 5 miljoen, 1,5 mld. euro, € 10-15",
                "vijf miljoen euro, één komma vijf miljard euro, tien tot vijftien euro",
            ),
            (
                "-€ 20, $5, 20 USD, CHF 20, £3.50",
                "min twintig euro, vijf dollar, twintig Amerikaanse dollar, twintig Zwitserse frank, drie pond vijftig",
            ),
            (
                "€ 20/maand, € 0,30/kWh, € 12 per uur",
                "twintig euro per maand, dertig cent per kilowattuur, twaalf euro per uur",
            ),
            ("12 euro 50", "twaalf euro vijftig"),
        ],
    );
}

#[test]
fn days() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            ("op 3 mei 2026", "op drie mei tweeduizend zesentwintig"),
            (
                "1 januari 2025, zondag 3 mei, zo. 3 mei",
                "één januari tweeduizend vijfentwintig, zondag drie mei, zondag drie mei",
            ),
            (
                "03-05-2026, 3/5/2026, 29.11.2026",
                "drie mei tweeduizend zesentwintig, drie mei tweeduizend zesentwintig, negenentwintig november tweeduizend zesentwintig",
            ),
            ("op 29/11 of later", "op negenentwintig november of later"),
            ("2026-11-29", "negenentwintig november tweeduizend zesentwintig"),
            (
                "2026-11-29T15:45:00Z",
                "negenentwintig november tweeduizend zesentwintig vijftien uur vijfenveertig UTC",
            ),
            ("van 3 tot 5 mei, 3-5 mei", "van drie tot vijf mei, drie tot vijf mei"),
            (
                "3 okt. 2026, in okt. 2026",
                "drie oktober tweeduizend zesentwintig, in oktober tweeduizend zesentwintig",
            ),
            ("Dat is Jan. Hij zingt.", "Dat is Jan. Hij zingt."),
            (
                "ma-vr 9-17 uur, di. 14.00 uur",
                "maandag tot en met vrijdag negen tot zeventien uur, dinsdag veertien uur",
            ),
            (
                "mei 2026, 44 v.Chr. was het",
                "mei tweeduizend zesentwintig, vierenveertig voor Christus was het",
            ),
        ],
    );
}

#[test]
fn times() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            (
                "15.45 uur, 15:45 uur, 15:45, 15u45",
                "vijftien uur vijfenveertig, vijftien uur vijfenveertig, vijftien uur vijfenveertig, vijftien uur vijfenveertig",
            ),
            (
                "om 9 uur, om 1 uur, om 0.15 uur, 9.05 uur",
                "om negen uur, om één uur, om nul uur vijftien, negen uur vijf",
            ),
            (
                "9-17 uur, 9.00–17.00 uur, 9u-17u",
                "negen tot zeventien uur, negen tot zeventien uur, negen tot zeventien uur",
            ),
            (
                "15:45:30, om 15.30 u. begint het",
                "vijftien uur vijfenveertig minuten en dertig seconden, om vijftien uur dertig begint het",
            ),
            ("2 u, 1 uur en 30 min", "twee uur, één uur en dertig minuten"),
            (
                "tussen 9.00 en 12.30 uur, 9.00 en 12.30",
                "tussen negen uur en twaalf uur dertig, negen punt nul nul en twaalf punt dertig",
            ),
            ("15.45 uur UTC", "vijftien uur vijfenveertig UTC"),
        ],
    );
}

#[test]
fn measures() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            (
                "5,2 km, 1 kg meel, 100 km/u, 20 °C, -5 °C, 1,5 l",
                "vijf komma twee kilometer, één kilogram meel, honderd kilometer per uur, twintig graden Celsius, min vijf graden Celsius, één komma vijf liter",
            ),
            (
                "5 m², 16 GB RAM, 2 cl",
                "vijf vierkante meter, zestien gigabyte Ram, twee centiliter",
            ),
            ("30 min pauze, 1 min, 5 s", "dertig minuten pauze, één minuut, vijf seconden"),
            (
                "52,37° N, 4,89° O",
                "tweeënvijftig komma zevenendertig graden noord, vier komma negenentachtig graden oost",
            ),
            (
                "8,5 l/100 km, 90° links, 200 pk",
                "acht komma vijf liter per honderd kilometer, negentig graden links, tweehonderd pk",
            ),
        ],
    );
}

#[test]
fn telephones_cards_and_machines() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            (
                "020 123 4567, 06 12345678, 06-12345678",
                "nul twee nul, één twee drie, vier vijf zes zeven, nul zes, één twee drie vier vijf zes zeven acht, nul zes, één twee drie vier vijf zes zeven acht",
            ),
            ("+31 20 123 4567", "plus drie één, twee nul, één twee drie, vier vijf zes zeven"),
            (
                "kaart 4111 1111 1111 1111",
                "kaart vier één één één, één één één één, één één één één, één één één één",
            ),
            ("192.168.0.1", "één negen twee punt één zes acht punt nul punt één"),
            ("v2.1.3", "versie twee punt één punt drie"),
            ("bestelnummer: 48213977", "bestelnummer: vier acht twee één drie negen zeven zeven"),
            ("bel 112", "bel één één twee"),
            (
                "1012 AB Amsterdam, in 2024 EU-regels",
                "tien twaalf AB Amsterdam, in tweeduizend vierentwintig EU-regels",
            ),
            (
                "H100, A4, COVID-19, B2B, F-16",
                "H honderd, A vier, Covid negentien, B twee B, F zestien",
            ),
        ],
    );
}

#[test]
fn addresses() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            ("zie https://example.com/hulp", "zie example punt com slash hulp"),
            ("https://example.com/", "HTTPS dubbelepunt slash slash example punt com slash"),
            ("jan.jansen@example.nl", "jan punt jansen apenstaartje example punt NL"),
            ("www.ns.nl, verslag.pdf", "WWW punt NS punt NL, verslag punt PDF"),
            (
                "zie #FijneVakantie van @jan_42",
                "zie hashtag Fijne Vakantie van apenstaartje jan tweeënveertig",
            ),
        ],
    );
}

#[test]
fn short_forms() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            (
                "dhr. Jansen en mevr. De Vries, prof. dr. Bakker",
                "de heer Jansen en mevrouw De Vries, professor doctor Bakker",
            ),
            ("appels, peren enz. Daarna ging hij.", "appels, peren enzovoort. Daarna ging hij."),
            ("appels, peren enz.", "appels, peren enzovoort."),
            (
                "bijv. brood, d.w.z. morgen, m.b.t. dit, o.a. brood",
                "bijvoorbeeld brood, dat wil zeggen morgen, met betrekking tot dit, onder andere brood",
            ),
            (
                "blz. 12, nr. 5, hfst. 3, art. 2, afb. 4",
                "bladzijde twaalf, nummer vijf, hoofdstuk drie, artikel twee, afbeelding vier",
            ),
            ("ca. 5 kg, max. 10, incl. btw", "circa vijf kilogram, maximaal tien, inclusief btw"),
            (
                "ma t/m vr, prof. dr. ir. Jansen, a.u.b. en s.v.p.",
                "maandag tot en met vrijdag, professor doctor ingenieur Jansen, alstublieft en alstublieft.",
            ),
            ("dr. J. Martin", "doctor J Martin"),
            ("Zo is het. Ma zei dat.", "Zo is het. Ma zei dat."),
        ],
    );
}

#[test]
fn letters() {
    check(
        "nl-NL",
        SPACED,
        &[
            ("De NS, de NAVO, de EU en de btw", "De N S, de NAVO, de E U en de btw"),
            ("LET OP! DIT IS NIEUW", "LET OP! DIT IS NIEUW"),
            ("twee BV's, de VVD", "twee B V's, de V V D"),
        ],
    );
}

#[test]
fn signs() {
    check(
        "nl-NL",
        Conventions::DEFAULT,
        &[
            ("R&D, en/of, hij/zij", "R en D, en of, hij of zij"),
            (
                "a → b, 5 > 3, a ≤ b",
                "a naar b, vijf groter dan drie, a kleiner dan of gelijk aan b",
            ),
            ("Wacht... nu – of nooit", "Wacht... nu – of nooit"),
            ("§ 5, 's morgens, z'n", "paragraaf vijf, 's morgens, z'n"),
        ],
    );
}

#[test]
fn bare_lines() {
    check(
        "nl-NL",
        SPACED,
        &[
            ("om 13.30", "om dertien uur dertig"),
            ("1,01 €", "één euro en één cent"),
            ("-1/13", "min een dertiende"),
            ("10 : 2", "tien gedeeld door twee"),
        ],
    );
}
