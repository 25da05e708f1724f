//! Currencies and words for many in Italian.

use crate::text::verbalise::language::{Currency, Magnitude, Minor, currency, feminine};
use crate::text::verbalise::names::Gender;

const fn magnitude(written: &'static str, word: &'static str) -> Magnitude {
    let gender = Gender::Masculine;
    Magnitude {
        written,
        one: word,
        other: word,
        gender,
        dotted: false,
        linked: true,
        money_only: false,
    }
}

const fn short(written: &'static str, one: &'static str, other: &'static str) -> Magnitude {
    Magnitude { one, other, dotted: true, money_only: true, ..magnitude(written, one) }
}

/// As they are written: both numbers of a word stand here.
pub(super) const MAGNITUDES: &[Magnitude] = &[
    Magnitude { linked: false, ..short("mila", "mila", "mila") },
    Magnitude { linked: false, dotted: false, ..short("k", "mila", "mila") },
    Magnitude { linked: false, dotted: false, ..short("K", "mila", "mila") },
    Magnitude { money_only: false, ..short("mln", "milione", "milioni") },
    Magnitude { money_only: false, ..short("mld", "miliardo", "miliardi") },
    short("M", "milione", "milioni"),
    magnitude("milione", "milione"),
    magnitude("milioni", "milioni"),
    magnitude("miliardo", "miliardo"),
    magnitude("miliardi", "miliardi"),
    magnitude("bilione", "bilione"),
    magnitude("bilioni", "bilioni"),
];

const CENTESIMI: Minor = Some(("centesimo", "centesimi"));
const PENCE: Minor = Some(("penny", "pence"));

/// The longer sign before the shorter. Names of codes come from CLDR, their hundredths from here.
pub(super) const CURRENCIES: &[Currency] = &[
    currency("US$", "dollaro statunitense", "dollari statunitensi", CENTESIMI),
    currency("C$", "dollaro canadese", "dollari canadesi", CENTESIMI),
    currency("A$", "dollaro australiano", "dollari australiani", CENTESIMI),
    currency("R$", "real", "real", CENTESIMI),
    currency("$", "dollaro", "dollari", CENTESIMI),
    currency("€", "euro", "euro", CENTESIMI),
    feminine(currency("£", "sterlina", "sterline", PENCE)),
    currency("¥", "yen", "yen", None),
    feminine(currency("₹", "rupia", "rupie", None)),
    currency("₩", "won", "won", None),
    currency("₽", "rublo", "rubli", None),
    feminine(currency("₺", "lira turca", "lire turche", None)),
    currency("₿", "bitcoin", "bitcoin", None),
    currency("Fr.", "franco", "franchi", CENTESIMI),
    currency("USD", "dollaro statunitense", "dollari statunitensi", CENTESIMI),
    currency("EUR", "euro", "euro", CENTESIMI),
    feminine(currency("GBP", "sterlina", "sterline", PENCE)),
    currency("CHF", "franco svizzero", "franchi svizzeri", CENTESIMI),
];
