//! French, row by row. Numbers after CLDR, with the hyphens of 1990; ordinals, numerals, hours and short forms after the
//! Académie française and the "Lexique des règles typographiques en usage à l'Imprimerie nationale"; ambiguous forms in
//! both directions.

use super::*;

/// What random texts are made of.
pub(super) const PIECES: &[&str] = &[
    "17/18",
    "-19 juin",
    "Mᵐᵉ",
    "08 h",
    "n° ",
    "1er ",
    "2nde",
    "XXIe",
    "Ier",
    "15 h 45",
    "9h",
    "-17h",
    "sept. ",
    "M. ",
    "Mme ",
    "l'",
    "bd ",
    "1 234,5",
    "01 23 45 67 89",
    "av. J.-C.",
    " × ",
    " x ",
    "1/4 de",
    "St-",
    "24h/24",
    " pages",
];

#[test]
fn numbers() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            ("J'ai 3 chats et 1 chien.", "J'ai trois chats et un chien."),
            (
                "1 234 567 personnes, 1 234 567 €",
                "un million deux cent trente-quatre mille cinq cent soixante-sept personnes, un million deux cent trente-quatre mille cinq cent soixante-sept euros",
            ),
            (
                "Pi vaut 3,14 et -5 est froid.",
                "Pi vaut trois virgule quatorze et moins cinq est froid.",
            ),
            (
                "0,05 et 2,75 et 3,14159 et 1,5",
                "zéro virgule zéro cinq et deux virgule soixante-quinze et trois virgule un quatre un cinq neuf et un virgule cinq",
            ),
            (
                "71, 80, 81, 90, 99, 200, 1000, 1985",
                "soixante-et-onze, quatre-vingts, quatre-vingt-un, quatre-vingt-dix, quatre-vingt-dix-neuf, deux cents, mille, mille neuf cent quatre-vingt-cinq",
            ),
            (
                "21 pages, 1 fille, 31 jours, 1 livre, 101 personnes",
                "vingt-et-une pages, une fille, trente-et-un jours, un livre, cent une personnes",
            ),
            ("10-15 euros, 10–15 pages", "dix à quinze euros, dix à quinze pages"),
        ],
    );
}

#[test]
fn fractions_and_ratios() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            ("1/2, 1/3, 3/4, 2/5", "un demi, un tiers, trois quarts, deux cinquièmes"),
            ("le 1/4 de finale, 3/4 d'heure", "le quart de finale, trois quarts d'heure"),
            ("1 1/2, 2½, 2 3/4", "un et demi, deux et demi, deux et trois quarts"),
            ("1/2 heure, ½ journée", "une demi-heure, une demi-journée"),
            (
                "15/20, 12/20, 120/80",
                "quinze sur vingt, douze sur vingt, cent vingt sur quatre-vingts",
            ),
            ("gagné 3-2, un rapport de 16:9", "gagné trois à deux, un rapport de seize à neuf"),
            (
                "50 % de remise, 5-10 % de plus, 12,5%",
                "cinquante pour cent de remise, cinq à dix pour cent de plus, douze virgule cinq pour cent",
            ),
        ],
    );
}

#[test]
fn sums_and_large_numbers() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            (
                "5 x 3 = 15, 3 m x 4 m",
                "cinq fois trois égale quinze, trois mètres sur quatre mètres",
            ),
            (
                "5 ± 2, 2 + 2 = 4, 10 - 4 = 6, 3 × 4, x²",
                "cinq plus ou moins deux, deux plus deux égale quatre, dix moins quatre égale six, trois fois quatre, x au carré",
            ),
            ("1,5e-3", "un virgule cinq fois dix puissance moins trois"),
            ("007", "zéro zéro sept"),
            (
                "version 3.12, version 3.12.1",
                "version trois point douze, version trois point douze point un",
            ),
            (
                "1 000 000 personnes, 2 000 000 habitants, 3 000 000 €",
                "un million de personnes, deux millions d'habitants, trois millions d'euros",
            ),
            (
                "5,3 millions d'utilisateurs, 1,5 million, 2 milliards",
                "cinq virgule trois millions d'utilisateurs, un virgule cinq million, deux milliards",
            ),
        ],
    );
}

#[test]
fn ordinals_and_numerals() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            ("le 101e, le 81e, les 1res", "le cent unième, le quatre-vingt-unième, les premières"),
            (
                "le 1er, la 1re fois, la 1ère, le 2e, le 3ème, le 2nd, la 2nde, les 3es",
                "le premier, la première fois, la première, le deuxième, le troisième, le second, la seconde, les troisièmes",
            ),
            (
                "le XXIe siècle, François Ier, la Ve République, la Ire, le IIIème",
                "le vingt-et-unième siècle, François premier, la cinquième République, la première, le troisième",
            ),
            (
                "Louis XIV, Napoléon III, Élisabeth II, Henri IV",
                "Louis quatorze, Napoléon trois, Élisabeth deux, Henri quatre",
            ),
            ("chapitre IV, tome II, Jean-Paul II", "chapitre quatre, tome deux, Jean-Paul deux"),
            ("le Me Dupont, Le chat", "le maître Dupont, Le chat"),
        ],
    );
}

#[test]
fn regions() {
    check(
        "fr-BE",
        Conventions::DEFAULT,
        &[(
            "71, 80, 85, 90, 99, 1 975, 80 000, 81e",
            "septante-et-un, quatre-vingts, quatre-vingt-cinq, nonante, nonante-neuf, mille neuf cent septante-cinq, quatre-vingt mille, quatre-vingt-unième",
        )],
    );
    check(
        "fr-CH",
        Conventions::DEFAULT,
        &[(
            "71, 80, 90, 99, 1'234.50",
            "septante-et-un, huitante, nonante, nonante-neuf, mille deux cent trente-quatre virgule cinquante",
        )],
    );
}

#[test]
fn money() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            ("1 234,50 €", "mille deux cent trente-quatre euros cinquante"),
            (
                "12,05 €, 0,99 €, 1 €, 5,00 €, 0,01 €",
                "douze euros et cinq centimes, quatre-vingt-dix-neuf centimes, un euro, cinq euros, un centime",
            ),
            (
                "5 M€, 3 Md€, 10 k€, 5 millions €, 2 millions $",
                "cinq millions d'euros, trois milliards d'euros, dix mille euros, cinq millions d'euros, deux millions de dollars",
            ),
            ("5,20 euros, 12 euros 50", "cinq euros vingt, douze euros cinquante"),
            (
                "-20 €, $5, 20 USD, CHF 20, 3,50 £, £3.50",
                "moins vingt euros, cinq dollars, vingt dollars américains, vingt francs suisses, trois livres cinquante, trois livres cinquante",
            ),
            ("20 €/mois, 0,30 €/kWh", "vingt euros par mois, trente centimes par kilowattheure"),
            (
                "1,5 milliard d'euros, 21 livres sterling, 1 £",
                "un virgule cinq milliard d'euros, vingt-et-un livres sterling, une livre",
            ),
        ],
    );
}

#[test]
fn days() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            ("le 3 mai 2026", "le trois mai deux mille vingt-six"),
            (
                "le 1er mai, le 1 mai, 1er janvier 2025",
                "le premier mai, le premier mai, premier janvier deux mille vingt-cinq",
            ),
            (
                "lundi 3 mai 2026, lun. 3 mai",
                "lundi trois mai deux mille vingt-six, lundi trois mai",
            ),
            (
                "le 03/05/2026, le 29/11, 29.11.2026",
                "le trois mai deux mille vingt-six, le vingt-neuf novembre, vingt-neuf novembre deux mille vingt-six",
            ),
            ("2026-11-29", "vingt-neuf novembre deux mille vingt-six"),
            (
                "2026-11-29T15:45:00Z",
                "vingt-neuf novembre deux mille vingt-six quinze heures quarante-cinq UTC",
            ),
            ("du 3 au 5 mai, 3-5 mai", "du trois au cinq mai, trois à cinq mai"),
            (
                "3 févr. 2026, en sept. 2024, 5 oct.",
                "trois février deux mille vingt-six, en septembre deux mille vingt-quatre, cinq octobre.",
            ),
            ("Ils sont sept. Puis huit.", "Ils sont sept. Puis huit."),
            (
                "mai 68, mai 2026, en 1789, en 1985",
                "mai soixante-huit, mai deux mille vingt-six, en mille sept cent quatre-vingt-neuf, en mille neuf cent quatre-vingt-cinq",
            ),
            (
                "dans les années 90, en 44 av. J.-C.",
                "dans les années quatre-vingt-dix, en quarante-quatre avant Jésus-Christ.",
            ),
            ("la mer 3 fois", "la mer trois fois"),
        ],
    );
}

#[test]
fn times() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            (
                "Ouvert 24h/24 et 7j/7.",
                "Ouvert vingt-quatre heures sur vingt-quatre et sept jours sur sept.",
            ),
            ("35 h/semaine, 3 fois/jour", "trente-cinq heures par semaine, trois fois par jour"),
            ("à 8 h du matin", "à huit heures du matin"),
            (
                "15 h 45, 15h45, 15:45, 15 h, 8h30",
                "quinze heures quarante-cinq, quinze heures quarante-cinq, quinze heures quarante-cinq, quinze heures, huit heures trente",
            ),
            (
                "à 1 h, à 21 h, à 0h15, à 9h05",
                "à une heure, à vingt-et-une heures, à zéro heure quinze, à neuf heures cinq",
            ),
            (
                "9h-17h, de 9h30 à 17h, 9h30-17h",
                "neuf heures à dix-sept heures, de neuf heures trente à dix-sept heures, neuf heures trente à dix-sept heures",
            ),
            (
                "15:45:30, 1 h 30 min 20 s",
                "quinze heures quarante-cinq minutes et trente secondes, une heure trente minutes vingt secondes",
            ),
            ("Il est 10:15.", "Il est dix heures quinze."),
            ("15h45 UTC", "quinze heures quarante-cinq UTC"),
            ("lun-ven 9h-18h", "lundi à vendredi neuf heures à dix-huit heures"),
        ],
    );
}

#[test]
fn measures() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            (
                "5,2 km, 1 kg de farine, 100 km/h, 20 °C, -5 °C, 1,5 l",
                "cinq virgule deux kilomètres, un kilogramme de farine, cent kilomètres par heure, vingt degrés Celsius, moins cinq degrés Celsius, un virgule cinq litre",
            ),
            (
                "5 m², 16 Go de RAM, 2 cl",
                "cinq mètres carrés, seize gigaoctets de Ram, deux centilitres",
            ),
            ("C'est à 200 m. Puis tournez.", "C'est à deux cents mètres. Puis tournez."),
            (
                "30 min de pause, 2 h, 1 h, 5 s, 21 h",
                "trente minutes de pause, deux heures, une heure, cinq secondes, vingt-et-une heures",
            ),
            (
                "48,85° N, 2,35° E",
                "quarante-huit virgule quatre-vingt-cinq degrés nord, deux virgule trente-cinq degrés est",
            ),
            (
                "8,5 l/100 km, 200 ch",
                "huit virgule cinq litres aux cent kilomètres, deux cents chevaux",
            ),
            ("1920x1080", "mille neuf cent vingt sur mille quatre-vingts"),
        ],
    );
}

#[test]
fn phones() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            (
                "01 23 45 67 89, 06.12.34.56.78",
                "zéro un, vingt-trois, quarante-cinq, soixante-sept, quatre-vingt-neuf, zéro six, douze, trente-quatre, cinquante-six, soixante-dix-huit",
            ),
            (
                "+33 1 23 45 67 89",
                "plus trente-trois, un, vingt-trois, quarante-cinq, soixante-sept, quatre-vingt-neuf",
            ),
            (
                "tél. 01 23 45 67 89",
                "téléphone zéro un, vingt-trois, quarante-cinq, soixante-sept, quatre-vingt-neuf",
            ),
            (
                "carte 4111 1111 1111 1111",
                "carte quatre un un un, un un un un, un un un un, un un un un",
            ),
            ("192.168.0.1", "un neuf deux point un six huit point zéro point un"),
            ("v2.1.3", "version deux point un point trois"),
            ("commande : 48213977", "commande : quatre huit deux un trois neuf sept sept"),
            ("le 112, le 15", "le cent douze, le quinze"),
            ("75001 Paris", "soixante-quinze mille un Paris"),
            ("la COP21, siège 12A", "la COP vingt-et-un, siège douze A"),
            (
                "H100, A4, COVID-19, B2B, F-16",
                "H cent, A quatre, Covid dix-neuf, B deux B, F seize",
            ),
        ],
    );
}

#[test]
fn addresses() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            ("voir https://example.com/aide", "voir example point com slash aide"),
            ("https://example.com", "HTTPS deux-points slash slash example point com"),
            ("jean.dupont@example.fr", "jean point dupont arobase example point FR"),
            ("www.sncf.fr, rapport.pdf", "WWW point SNCF point FR, rapport point PDF"),
            (
                "voir #BonneAnnée de @jean_42",
                "voir hashtag Bonne Année de arobase jean quarante-deux",
            ),
        ],
    );
}

#[test]
fn short_forms() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            (
                "M. Dupont, Mme Martin, MM. Durand, Mlle Petit",
                "monsieur Dupont, madame Martin, messieurs Durand, mademoiselle Petit",
            ),
            (
                "le Dr Martin, Me Dupont, Mgr Lustiger",
                "le docteur Martin, maître Dupont, monseigneur Lustiger",
            ),
            ("pommes, poires, etc. Puis il partit.", "pommes, poires, et cetera. Puis il partit."),
            ("pommes, poires, etc.", "pommes, poires, et cetera."),
            ("M.-A. Dupont, etc... et puis", "M.-A Dupont, et cetera... et puis"),
            ("p. ex. Mme Dupont", "par exemple madame Dupont"),
            (
                "p. ex. du pain, c.-à-d. demain, P. ex. ici",
                "par exemple du pain, c'est-à-dire demain, Par exemple ici",
            ),
            (
                "n° 5, n°5, N° 5, nº 5, nos 5 et 6, no 5",
                "numéro cinq, numéro cinq, numéro cinq, numéro cinq, numéros cinq et six, numéro cinq",
            ),
            (
                "p. 12, art. 3, chap. 2, fig. 4",
                "page douze, article trois, chapitre deux, figure quatre",
            ),
            (
                "ouvert du lun. au ven. à 8 h, l'app. Puis",
                "ouvert du lundi au vendredi à huit heures, l'app. Puis",
            ),
            (
                "env. 5 kg, max. 10, cf. page 3",
                "environ cinq kilogrammes, maximum dix, confer page trois",
            ),
            (
                "av. Victor Hugo, bd Voltaire, St-Denis, Ste-Marie",
                "avenue Victor Hugo, boulevard Voltaire, Saint-Denis, Sainte-Marie",
            ),
            ("J.-C. et J.-B.", "Jésus-Christ et Jean-Baptiste."),
            ("s.v.p. et svp", "s'il vous plaît et s'il vous plaît"),
            ("12 bis, rue de la Paix", "douze bis, rue de la Paix"),
            (
                "M. et Mme Dupont, M. le Président",
                "monsieur et madame Dupont, monsieur le Président",
            ),
            ("Me voici. No, nos amis.", "Me voici. No, nos amis."),
            ("art. L. 123", "art. L. cent vingt-trois"),
            ("J. Dupont", "J Dupont"),
        ],
    );
}

#[test]
fn letters() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            ("La SNCF, l'OTAN, l'ONU, la TVA, le PDG", "La SNCF, l'Otan, l'Onu, la TVA, le PDG"),
            ("ATTENTION ! C'EST NOUVEAU", "ATTENTION ! C'EST NOUVEAU"),
            ("l'UE et les USA, deux PC", "l'UE et les USA, deux PC"),
            ("le RER B et la CGT", "le RER B et la CGT"),
        ],
    );
}

#[test]
fn signs() {
    check(
        "fr-FR",
        Conventions::DEFAULT,
        &[
            ("R&D, et/ou, il/elle", "R et D, et ou, il ou elle"),
            ("a → b, 5 > 3, a ≤ b", "a vers b, cinq supérieur à trois, a inférieur ou égal à b"),
            ("Attends... maintenant – ou jamais", "Attends... maintenant – ou jamais"),
            ("90° à gauche, § 5", "quatre-vingt-dix degrés à gauche, paragraphe cinq"),
            ("« Bonjour », dit-il", "« Bonjour », dit-il"),
            ("3 % et 4 ‰", "trois pour cent et quatre pour mille"),
        ],
    );
}

#[test]
fn bare_lines() {
    check(
        "fr-FR",
        SPACED,
        &[
            ("Mᵐᵉ Roux et le Dʳ Blin", "madame Roux et le docteur Blin"),
            ("les 17/18 juin", "les dix-sept dix-huit juin"),
            ("les 5-6-7 mai 2026", "les cinq six sept mai deux mille vingt-six"),
            ("3,1416", "trois virgule quatorze seize"),
            ("08 h", "huit heures"),
            ("3/4 l et 1/2 h", "trois quarts de litre et une demi-heure"),
            ("1/4 h", "un quart d'heure"),
            ("chap. IV", "chapitre quatre"),
            ("6,492,000", "six millions quatre cent quatre-vingt-douze mille"),
            (
                "1593072962",
                "un milliard cinq cent quatre-vingt-treize millions soixante-douze mille neuf cent soixante-deux",
            ),
            ("2,5 €", "deux euros cinquante"),
            ("5 eur", "cinq euros"),
            ("1/20", "un vingtième"),
            ("15/20", "quinze sur vingt"),
            ("carte terminant par 4417", "carte terminant par quatre quatre un sept"),
        ],
    );
}
