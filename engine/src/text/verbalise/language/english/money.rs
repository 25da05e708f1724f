//! Currencies and words for many in English.

use crate::text::verbalise::language::{Currency, Magnitude, Minor, currency};
use crate::text::verbalise::names::Gender;

const fn magnitude(written: &'static str, word: &'static str, money_only: bool) -> Magnitude {
    let gender = Gender::Masculine;
    Magnitude { written, one: word, other: word, gender, dotted: false, linked: false, money_only }
}

pub(super) const MAGNITUDES: &[Magnitude] = &[
    magnitude("hundred", "hundred", false),
    magnitude("thousand", "thousand", false),
    magnitude("million", "million", false),
    magnitude("billion", "billion", false),
    magnitude("trillion", "trillion", false),
    magnitude("quadrillion", "quadrillion", false),
    magnitude("mn", "million", false),
    magnitude("mln", "million", false),
    magnitude("bn", "billion", false),
    magnitude("bln", "billion", false),
    magnitude("tn", "trillion", false),
    magnitude("k", "thousand", true),
    magnitude("K", "thousand", true),
    magnitude("m", "million", true),
    magnitude("M", "million", true),
    magnitude("MM", "million", true),
    magnitude("b", "billion", true),
    magnitude("B", "billion", true),
    magnitude("T", "trillion", true),
];

const CENTS: Minor = Some(("cent", "cents"));
const PENCE: Minor = Some(("penny", "pence"));

/// Signs first: the longer before the shorter. Names of codes come from CLDR, their hundredths from here.
pub(super) const CURRENCIES: &[Currency] = &[
    currency("US$", "US dollar", "US dollars", CENTS),
    currency("CA$", "Canadian dollar", "Canadian dollars", CENTS),
    currency("C$", "Canadian dollar", "Canadian dollars", CENTS),
    currency("AU$", "Australian dollar", "Australian dollars", CENTS),
    currency("A$", "Australian dollar", "Australian dollars", CENTS),
    currency("NZ$", "New Zealand dollar", "New Zealand dollars", CENTS),
    currency("HK$", "Hong Kong dollar", "Hong Kong dollars", CENTS),
    currency("S$", "Singapore dollar", "Singapore dollars", CENTS),
    currency("R$", "real", "reals", Some(("centavo", "centavos"))),
    currency("$", "dollar", "dollars", CENTS),
    currency("€", "euro", "euros", CENTS),
    currency("£", "pound", "pounds", PENCE),
    currency("¥", "yen", "yen", None),
    currency("Rs.", "rupee", "rupees", Some(("paisa", "paise"))),
    currency("₹", "rupee", "rupees", Some(("paisa", "paise"))),
    currency("₩", "won", "won", None),
    currency("₽", "ruble", "rubles", Some(("kopek", "kopeks"))),
    currency("₺", "lira", "lira", Some(("kurus", "kurus"))),
    currency("₪", "shekel", "shekels", Some(("agora", "agorot"))),
    currency("₴", "hryvnia", "hryvnias", Some(("kopiyka", "kopiykas"))),
    currency("₿", "bitcoin", "bitcoins", None),
    currency("฿", "baht", "baht", Some(("satang", "satang"))),
    currency("₫", "dong", "dong", None),
    currency("₦", "naira", "naira", Some(("kobo", "kobo"))),
    currency("Fr.", "franc", "francs", Some(("centime", "centimes"))),
    currency("USD", "US dollar", "US dollars", CENTS),
    currency("EUR", "euro", "euros", CENTS),
    currency("GBP", "British pound", "British pounds", PENCE),
    currency("CAD", "Canadian dollar", "Canadian dollars", CENTS),
    currency("AUD", "Australian dollar", "Australian dollars", CENTS),
    currency("NZD", "New Zealand dollar", "New Zealand dollars", CENTS),
    currency("CHF", "Swiss franc", "Swiss francs", Some(("centime", "centimes"))),
];
