//! German, row by row. Numbers after CLDR; ordinals, cases and short forms after Duden, "Die deutsche Rechtschreibung" (rules
//! on numbers and short forms) and "Die Grammatik" (declension of adjectives); ambiguous forms in both directions.

use super::*;

/// What random texts are made of.
pub(super) const PIECES: &[&str] = &[
    "02.03",
    "am 17.06",
    "\n7.\n",
    ",05",
    " 1/13",
    "code AB12",
    "am ",
    "3. ",
    "Mai ",
    "15.45 Uhr",
    "z. B. ",
    "1.234,50",
    ",-",
    "Ludwig XIV.",
    "Hauptstr. ",
    "90er",
    "-mal",
    "1 Tag",
    "Mo.-Fr. ",
];

#[test]
fn numbers() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            ("3 Katzen und 1 Hund", "drei Katzen und ein Hund"),
            (
                "1 234 567 Menschen, 1.234.567 Menschen",
                "eine Million zweihundertvierunddreißigtausendfünfhundertsiebenundsechzig Menschen, eine Million zweihundertvierunddreißigtausendfünfhundertsiebenundsechzig Menschen",
            ),
            (
                "Pi ist 3,14 und -5 ist kalt.",
                "Pi ist drei Komma eins vier und minus fünf ist kalt.",
            ),
            ("0,05 und 101", "null Komma null fünf und einhunderteins"),
            ("Es sind 21 und dann noch 1.", "Es sind einundzwanzig und dann noch eins."),
            ("10-15 Stück, 10–15 Stück", "zehn bis fünfzehn Stück, zehn bis fünfzehn Stück"),
        ],
    );
    check(
        "de-CH",
        Conventions::DEFAULT,
        &[
            (
                "1’234.50 und 1'234,5",
                "eintausendzweihundertvierunddreissig Komma fünf null und eintausendzweihundertvierunddreissig Komma fünf",
            ),
            ("5.50 Fr. und CHF 20.–", "fünf Franken fünfzig und zwanzig Schweizer Franken"),
        ],
    );
    check(
        "de-AT",
        Conventions::DEFAULT,
        &[(
            "am 3. Jänner 2026, 3.1.2026",
            "am dritten Jänner zweitausendsechsundzwanzig, dritter Jänner zweitausendsechsundzwanzig",
        )],
    );
}

#[test]
fn fractions_and_ratios() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            (
                "1/2 Liter, 3/4, 2/3, 5/11, 3/20, 5/3, 4/4-Takt",
                "ein halber Liter, drei Viertel, zwei Drittel, fünf Elftel, drei Zwanzigstel, fünf Drittel, vier Viertel-Takt",
            ),
            (
                "1 1/2 Stunden, 2½ Stunden, 2 3/4",
                "eineinhalb Stunden, zweieinhalb Stunden, zwei drei Viertel",
            ),
            (
                "50/50, 24/7, 120/80",
                "fünfzig fünfzig, vierundzwanzig sieben, einhundertzwanzig zu achtzig",
            ),
            (
                "siegte mit 3:2, gewann 3-2, Köln–Bonn 3-1, 1-3",
                "siegte mit drei zu zwei, gewann drei zu zwei, Köln–Bonn drei zu eins, eins bis drei",
            ),
            ("im Verhältnis 16:9", "im Verhältnis sechzehn zu neun"),
            (
                "50 % Rabatt, 5-10 % mehr, 12,5%",
                "fünfzig Prozent Rabatt, fünf bis zehn Prozent mehr, zwölf Komma fünf Prozent",
            ),
        ],
    );
}

#[test]
fn sums_and_large_numbers() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            (
                "5 ± 2, 2 + 2 = 4, 10 - 4 = 6, 3 × 4, x²",
                "fünf plus minus zwei, zwei plus zwei gleich vier, zehn minus vier gleich sechs, drei mal vier, x Quadrat",
            ),
            ("1,5e-3", "eins Komma fünf mal zehn hoch minus drei"),
            ("007", "null null sieben"),
            (
                "12345678901234567890",
                "eins zwei drei vier fünf sechs sieben acht neun null eins zwei drei vier fünf sechs sieben acht neun null",
            ),
            (
                "Version 3.12, Version 3.12.1, 3.5 km",
                "Version drei Punkt zwölf, Version drei Punkt zwölf Punkt eins, drei Komma fünf Kilometer",
            ),
            (
                "5,3 Millionen Nutzer, 83,2 Mio. Einwohner",
                "fünf Komma drei Millionen Nutzer, dreiundachtzig Komma zwei Millionen Einwohner",
            ),
            ("Es waren 5 Mio. Danach kam nichts.", "Es waren fünf Millionen. Danach kam nichts."),
        ],
    );
}

#[test]
fn one_before_a_noun() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            ("1 Stunde, in 1 Stunde", "eine Stunde, in einer Stunde"),
            (
                "1/2 l, 1/2 Stunde, ½ Jahr, 1 Kaffee",
                "ein halber Liter, eine halbe Stunde, ein halbes Jahr, ein Kaffee",
            ),
            ("vor 1 Tag, für 1 Tag, 1 Jahr", "vor einem Tag, für einen Tag, ein Jahr"),
            ("um 1 Uhr, 1 Euro, 1 Prozent", "um ein Uhr, ein Euro, ein Prozent"),
            (
                "1 neue Nachricht, 1 neuer Termin, 1 neues Auto",
                "eine neue Nachricht, ein neuer Termin, ein neues Auto",
            ),
            ("Kapitel 1 Einleitung", "Kapitel eins Einleitung"),
            ("1 Million Euro, 1 Mio. €", "eine Million Euro, eine Million Euro"),
        ],
    );
    check("de-DE", Conventions::DEFAULT, &[("ein 5-Sterne-Hotel", "ein Fünf-Sterne-Hotel")]);
}

#[test]
fn years_and_counts() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            ("1999 war es.", "neunzehnhundertneunundneunzig war es."),
            (
                "Im Jahr 1848 begann es, seit 1789.",
                "Im Jahr achtzehnhundertachtundvierzig begann es, seit siebzehnhundertneunundachtzig.",
            ),
            (
                "1985 Euro, 1985 Menschen",
                "eintausendneunhundertfünfundachtzig Euro, eintausendneunhundertfünfundachtzig Menschen",
            ),
            ("etwa 1985 davon", "etwa eintausendneunhundertfünfundachtzig davon"),
            (
                "1939–1945, von 1939 bis 1945",
                "neunzehnhundertneununddreißig bis neunzehnhundertfünfundvierzig, von neunzehnhundertneununddreißig bis neunzehnhundertfünfundvierzig",
            ),
            (
                "2026 Menschen im Jahr 2026",
                "zweitausendsechsundzwanzig Menschen im Jahr zweitausendsechsundzwanzig",
            ),
            (
                "Das war 1985. Danach kam er.",
                "Das war neunzehnhundertfünfundachtzig. Danach kam er.",
            ),
            (
                "in den 20ern, die 90er, die 1980er, 80er Jahre",
                "in den Zwanzigern, die Neunziger, die Neunzehnhundertachtziger, achtziger Jahre",
            ),
        ],
    );
}

#[test]
fn money() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            (
                "1.234,50 € kostet es.",
                "eintausendzweihundertvierunddreißig Euro fünfzig kostet es.",
            ),
            (
                "12,05 €, 0,99 €, 1 €, 5,00 €",
                "zwölf Euro fünf, neunundneunzig Cent, ein Euro, fünf Euro",
            ),
            (
                "5 Mio. Euro und 1,5 Mrd. €",
                "fünf Millionen Euro und eins Komma fünf Milliarden Euro",
            ),
            ("Das kostet 5,20 Euro pro Stück.", "Das kostet fünf Euro zwanzig pro Stück."),
            (
                "-20 €, $5, 20 USD, CHF 20, £3.50",
                "minus zwanzig Euro, fünf Dollar, zwanzig US-Dollar, zwanzig Schweizer Franken, drei Pfund fünfzig",
            ),
            (
                "20 €/Monat, 0,30 €/kWh, 30 ct/min",
                "zwanzig Euro pro Monat, dreißig Cent pro Kilowattstunde, dreißig Cent pro Minute",
            ),
            (
                "5,- €, 10–15 €, 50€-60€, 50 T€",
                "fünf Euro, zehn bis fünfzehn Euro, fünfzig bis sechzig Euro, fünfzig tausend Euro",
            ),
            (
                "$1.2M, 1.5 Mio. €",
                "eins Komma zwei Millionen Dollar, eins Komma fünf Millionen Euro",
            ),
            ("Fr. 5 und Fr. Müller", "fünf Franken und Frau Müller"),
        ],
    );
}

#[test]
fn days() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            ("am 3. Mai 2026 kam er", "am dritten Mai zweitausendsechsundzwanzig kam er"),
            ("der 3. Mai ist frei", "der dritte Mai ist frei"),
            ("3. Mai 2026", "dritter Mai zweitausendsechsundzwanzig"),
            ("Montag, 3. Mai 2026", "Montag, dritter Mai zweitausendsechsundzwanzig"),
            ("am Montag, 3. Mai", "am Montag, dem dritten Mai"),
            ("am Mo., 03.05.2026", "am Montag, dem dritten Mai zweitausendsechsundzwanzig"),
            ("Montag, der 3. Mai", "Montag, der dritte Mai"),
            (
                "vom 3. bis 5. Mai, vom 3.-5. Mai 2026",
                "vom dritten bis fünften Mai, vom dritten bis fünften Mai zweitausendsechsundzwanzig",
            ),
            ("3.–5. Mai", "dritter bis fünfter Mai"),
            ("am 3. und 5. Mai", "am dritten und fünften Mai"),
            ("am 3. Okt. 2026", "am dritten Oktober zweitausendsechsundzwanzig"),
            (
                "29.11.2026, 1.2.26",
                "neunundzwanzigster November zweitausendsechsundzwanzig, erster Februar zweitausendsechsundzwanzig",
            ),
            (
                "am 29.11. um 8 Uhr, Heiligabend (24.12.)",
                "am neunundzwanzigsten November um acht Uhr, Heiligabend (vierundzwanzigster Dezember)",
            ),
            ("bis zum 29.11. Danach nicht.", "bis zum neunundzwanzigsten November. Danach nicht."),
            (
                "am 24.12. und 25.12.",
                "am vierundzwanzigsten Dezember und fünfundzwanzigsten Dezember.",
            ),
            ("Montag-Freitag, Mo-Fr", "Montag bis Freitag, Montag bis Freitag"),
            (
                "Mo. und Di. geschlossen, Fr. und Sa. bis 18 Uhr",
                "Montag und Dienstag geschlossen, Freitag und Samstag bis achtzehn Uhr",
            ),
            ("2026-11-29", "neunundzwanzigster November zweitausendsechsundzwanzig"),
            (
                "2026-11-29T15:45:00Z",
                "neunundzwanzigster November zweitausendsechsundzwanzig fünfzehn Uhr fünfundvierzig UTC",
            ),
            ("Mai 2026, 05/2026", "Mai zweitausendsechsundzwanzig, Mai zweitausendsechsundzwanzig"),
            ("Sie kommt am 3. Dann geht sie.", "Sie kommt am dritten. Dann geht sie."),
            (
                "333 v. Chr., im 3. Jh. n. Chr.",
                "dreihundertdreiunddreißig vor Christus, im dritten Jahrhundert nach Christus.",
            ),
        ],
    );
}

#[test]
fn times() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            (
                "um 15:45 Uhr, um 15.45 Uhr, 15:45 h",
                "um fünfzehn Uhr fünfundvierzig, um fünfzehn Uhr fünfundvierzig, fünfzehn Uhr fünfundvierzig",
            ),
            ("um 9 Uhr, um 1 Uhr, um 0:15 Uhr", "um neun Uhr, um ein Uhr, um null Uhr fünfzehn"),
            ("um 8 h, 8 h Schlaf", "um acht Uhr, acht Stunden Schlaf"),
            (
                "9-17 Uhr, 9:00–17:00 Uhr, 9:30 - 10 Uhr",
                "neun bis siebzehn Uhr, neun bis siebzehn Uhr, neun Uhr dreißig bis zehn Uhr",
            ),
            ("15:45:30 Uhr", "fünfzehn Uhr fünfundvierzig Minuten und dreißig Sekunden"),
            ("Es ist 10:15.", "Es ist zehn Uhr fünfzehn."),
            ("Mo–Fr 9–17 Uhr", "Montag bis Freitag neun bis siebzehn Uhr"),
            (
                "Mo.-Fr. 8.30-18.00 Uhr, Sa. 9-13 Uhr",
                "Montag bis Freitag acht Uhr dreißig bis achtzehn Uhr, Samstag neun bis dreizehn Uhr",
            ),
            ("Es ist so. Dann geht er.", "Es ist so. Dann geht er."),
            ("um 15:45 Uhr MEZ", "um fünfzehn Uhr fünfundvierzig MEZ"),
            ("zwischen 9.00 und 12.30 Uhr", "zwischen neun Uhr und zwölf Uhr dreißig"),
            ("5 x 3, 3 m x 4 m", "fünf mal drei, drei Meter mal vier Meter"),
        ],
    );
}

#[test]
fn ordinals() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            ("der 3. Platz, auf Platz 3. Danach", "der dritte Platz, auf Platz drei. Danach"),
            (
                "das 2. Mal, die 2. Auflage, in der 2. Liga",
                "das zweite Mal, die zweite Auflage, in der zweiten Liga",
            ),
            (
                "im 21. Jahrhundert, zum 100. Geburtstag",
                "im einundzwanzigsten Jahrhundert, zum einhundertsten Geburtstag",
            ),
            (
                "1. Bundesliga, 3. Platz, 2. Kapitel",
                "erste Bundesliga, dritter Platz, zweites Kapitel",
            ),
            (
                "die 2. und 3. Auflage, der 2. oder 3. Versuch",
                "die zweite und dritte Auflage, der zweite oder dritte Versuch",
            ),
            (
                "der 10.000. Besucher, 10.000 Leute",
                "der zehntausendste Besucher, zehntausend Leute",
            ),
            (
                "Beethovens 9. Sinfonie, Sie ist 9. Anna nicht.",
                "Beethovens neunte Sinfonie, Sie ist neun. Anna nicht.",
            ),
            (
                "ein 3. Versuch, eine 2. Chance, ein 2. Mal",
                "ein dritter Versuch, eine zweite Chance, ein zweites Mal",
            ),
            ("Er wurde 3. und sie 4. beim Lauf.", "Er wurde dritter und sie vierter beim Lauf."),
            (
                "Die 3. Etage. Ich nehme die 3. Danach gehe ich.",
                "Die dritte Etage. Ich nehme die drei. Danach gehe ich.",
            ),
            ("Kapitel 3. Dann weiter.", "Kapitel drei. Dann weiter."),
            ("die 3te und der 3te", "die dritte und der dritte"),
            ("Ludwig XIV. war König.", "Ludwig der Vierzehnte war König."),
            ("Ludwig M Meier", "Ludwig M Meier"),
            (
                "Unter Friedrich II. wurde gebaut. Danach nicht.",
                "Unter Friedrich dem Zweiten wurde gebaut. Danach nicht.",
            ),
            (
                "Elisabeth II. starb, für Karl V.",
                "Elisabeth die Zweite starb, für Karl den Fünften.",
            ),
            (
                "Papst Johannes Paul II., im XX. Jahrhundert",
                "Papst Johannes Paul der Zweite, im zwanzigsten Jahrhundert",
            ),
            ("der II. Weltkrieg, Teil II", "der zweite Weltkrieg, Teil zwei"),
            ("Kapitel IV, Heinrichs VIII. Frauen", "Kapitel vier, Heinrichs des Achten Frauen"),
        ],
    );
}

#[test]
fn numbers_in_words() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            ("3-mal, 2x täglich, 3-fach", "dreimal, zweimal täglich, dreifach"),
            (
                "18-Jährige, 18-jährig, ein 5-km-Lauf",
                "Achtzehnjährige, achtzehnjährig, ein Fünf-Kilometer-Lauf",
            ),
            ("3-Zimmer-Wohnung, 10%ige Lösung", "Drei-Zimmer-Wohnung, zehnprozentige Lösung"),
        ],
    );
}

#[test]
fn measures() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            ("Klasse 5 A, 3.5 GB", "Klasse fünf A, drei Komma fünf Gigabyte"),
            (
                "5,2 km, 1 kg Mehl, 100 km/h, 20 °C, -5 °C",
                "fünf Komma zwei Kilometer, ein Kilogramm Mehl, einhundert Kilometer pro Stunde, zwanzig Grad Celsius, minus fünf Grad Celsius",
            ),
            (
                "5 m², 16 GB RAM, 1 EL Öl",
                "fünf Quadratmeter, sechzehn Gigabyte Ram, ein Esslöffel Öl",
            ),
            (
                "30 Min. Pause, 2 h, 1 h, 5 s",
                "dreißig Minuten Pause, zwei Stunden, eine Stunde, fünf Sekunden",
            ),
            (
                "48,137° N, 11,575° O",
                "achtundvierzig Komma eins drei sieben Grad Nord, elf Komma fünf sieben fünf Grad Ost",
            ),
            ("zwischen -5 und +3 °C", "zwischen minus fünf und plus drei Grad Celsius"),
            ("8,5 l/100 km, 200 PS", "acht Komma fünf Liter auf hundert Kilometer, zweihundert PS"),
            ("1920x1080", "eintausendneunhundertzwanzig mal eintausendachtzig"),
        ],
    );
}

#[test]
fn telephones_cards_and_machines() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            ("+49 30 1234567", "plus vier neun, drei null, eins zwei drei vier fünf sechs sieben"),
            (
                "Tel. 030 1234567, 0171/1234567",
                "Telefon null drei null, eins zwei drei vier fünf sechs sieben, null eins sieben eins, eins zwei drei vier fünf sechs sieben",
            ),
            (
                "Karte 4111 1111 1111 1111",
                "Karte vier eins eins eins, eins eins eins eins, eins eins eins eins, eins eins eins eins",
            ),
            ("192.168.0.1", "eins neun zwei Punkt eins sechs acht Punkt null Punkt eins"),
            ("v2.1.3", "Version zwei Punkt eins Punkt drei"),
            (
                "Bestellnummer: 48213977",
                "Bestellnummer: vier acht zwei eins drei neun sieben sieben",
            ),
            ("wählen Sie 112", "wählen Sie eins eins zwei"),
            ("Hauptstr. 5, 10115 Berlin", "Hauptstraße fünf, eins null eins eins fünf Berlin"),
            (
                "H100, A4, COVID-19, B2B, F-16",
                "H einhundert, A vier, Covid neunzehn, B zwei B, F sechzehn",
            ),
        ],
    );
}

#[test]
fn addresses() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            ("siehe https://example.com/hilfe", "siehe example Punkt com Schrägstrich hilfe"),
            ("http://example.com", "HTTP Doppelpunkt Schrägstrich Schrägstrich example Punkt com"),
            ("test.user@example.de", "test Punkt user at example Punkt DE"),
            ("www.bahn.de, bericht.pdf", "WWW Punkt bahn Punkt DE, bericht Punkt PDF"),
        ],
    );
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[(
            "zu #MontagsMotivation von @jane_doe42",
            "zu Hashtag Montags Motivation von at jane doe zweiundvierzig",
        )],
    );
}

#[test]
fn short_forms() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            (
                "Prof. Dr. Schmidt, Hr. Meier und Fr. Huber",
                "Professor Doktor Schmidt, Herr Meier und Frau Huber",
            ),
            (
                "z. B. Brot, z.B. Brot, Z. B. so",
                "zum Beispiel Brot, zum Beispiel Brot, Zum Beispiel so",
            ),
            (
                "d. h. morgen, i. d. R. heute, u. a. wegen",
                "das heißt morgen, in der Regel heute, unter anderem wegen",
            ),
            ("Äpfel, Birnen usw. Danach ging er.", "Äpfel, Birnen und so weiter. Danach ging er."),
            ("Äpfel, Birnen usw.", "Äpfel, Birnen und so weiter."),
            ("Nr. 5, S. 12, Abb. 3, Bd. 2", "Nummer fünf, Seite zwölf, Abbildung drei, Band zwei"),
            (
                "ca. 5 kg, ggf. mehr, inkl. MwSt.",
                "circa fünf Kilogramm, gegebenenfalls mehr, inklusive Mehrwertsteuer.",
            ),
            (
                "Er wohnt in der Hauptstr. Dort ist es schön.",
                "Er wohnt in der Hauptstraße. Dort ist es schön.",
            ),
            ("Frankfurt a. M. ist groß.", "Frankfurt am Main ist groß."),
            (
                "§ 5 Abs. 2, §§ 5–7, § 1 Abs. 1 S. 2",
                "Paragraf fünf Absatz zwei, Paragrafen fünf bis sieben, Paragraf eins Absatz eins Satz zwei",
            ),
            ("Art.-Nr. 4711", "Artikelnummer viertausendsiebenhundertelf"),
            ("B. Müller kam, USA vs. UdSSR", "B Müller kam, USA gegen UdSSR"),
        ],
    );
}

#[test]
fn letters() {
    check(
        "de-DE",
        SPACED,
        &[
            ("Die USA, die EU und die NATO", "Die U S A, die E U und die NATO"),
            ("Die Firma Bosch GmbH & Co. KG", "Die Firma Bosch G M B H und Co K G"),
            ("ACHTUNG! DAS IST NEU", "ACHTUNG! DAS IST NEU"),
            ("U-Bahn, E-Mail", "U-Bahn, E-Mail"),
            ("der ÖPNV und zwei PCs", "der Ö P N V und zwei P Cs"),
        ],
    );
}

#[test]
fn signs() {
    check(
        "de-DE",
        Conventions::DEFAULT,
        &[
            ("R&D, und/oder, er/sie", "R und D, und oder, er oder sie"),
            ("a → b, 5 > 3, a ≤ b", "a zu b, fünf größer als drei, a kleiner oder gleich b"),
            ("Warte ... jetzt – oder nie", "Warte ... jetzt – oder nie"),
            ("90° links", "neunzig Grad links"),
        ],
    );
}

#[test]
fn bare_lines() {
    check(
        "de-DE",
        SPACED,
        &[
            ("7.", "siebter."),
            ("um 13.30 geht es los", "um dreizehn Uhr dreißig geht es los"),
            ("um 2.50 € teurer", "um zwei Euro fünfzig teurer"),
            ("10 : 2", "zehn geteilt durch zwei"),
            ("Es sind 7.", "Es sind sieben."),
            ("4. Mär. 2026", "vierter März zweitausendsechsundzwanzig"),
            ("4. Mrz 2026", "vierter März zweitausendsechsundzwanzig"),
            ("am 17.06 geht es los", "am siebzehnten Juni geht es los"),
            ("04.05", "vierter Mai"),
            ("Kurs 17.06", "Kurs siebzehn Punkt null sechs"),
            ("€3,5", "drei Euro fünfzig"),
            ("€3,500", "drei Euro fünfzig"),
            ("3,01 €", "drei Euro ein Cent"),
            ("5 eur", "fünf Euro"),
            ("3 mio. Euro", "drei Millionen Euro"),
            ("70/km²", "siebzig pro Quadratkilometer"),
            ("6 kwh", "sechs Kilowattstunden"),
            ("1 Wh", "eine Wattstunde"),
            ("2 mm³", "zwei Kubikmillimeter"),
            ("-1/13", "minus ein Dreizehntel"),
            (",05", "null Komma null fünf"),
            (
                "2593072961",
                "zwei Milliarden fünfhundertdreiundneunzig Millionen zweiundsiebzigtausendneunhunderteinundsechzig",
            ),
            ("3,492,000", "drei Millionen vierhundertzweiundneunzigtausend"),
            ("dr. weber und mr. lee", "Doktor weber und Mister lee"),
            ("lfd. Nr. 3", "laufende Nummer drei"),
            ("@hans1975", "at hans eins neun sieben fünf"),
            ("die Karte endet auf 4417", "die Karte endet auf vier vier eins sieben"),
            ("Code KX4417", "Code K X vier vier eins sieben"),
        ],
    );
}
