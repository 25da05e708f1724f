//! Currencies and words for many in Portuguese.

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
    Magnitude { one, other, money_only: true, ..magnitude(written, one) }
}

/// As they are written: both numbers of a word stand here, and those of Brazil and Portugal.
pub(super) const MAGNITUDES: &[Magnitude] = &[
    Magnitude { linked: false, ..short("mil", "mil", "mil") },
    Magnitude { linked: false, ..short("k", "mil", "mil") },
    Magnitude { linked: false, ..short("K", "mil", "mil") },
    short("mi", "milhão", "milhões"),
    short("bi", "bilhão", "bilhões"),
    short("tri", "trilhão", "trilhões"),
    short("M", "milhão", "milhões"),
    short("MM", "milhão", "milhões"),
    magnitude("milhão", "milhão"),
    magnitude("milhões", "milhões"),
    magnitude("mil milhões", "mil milhões"),
    magnitude("bilhão", "bilhão"),
    magnitude("bilhões", "bilhões"),
    magnitude("bilião", "bilião"),
    magnitude("biliões", "biliões"),
    magnitude("trilhão", "trilhão"),
    magnitude("trilhões", "trilhões"),
];

const CENTAVOS: Minor = Some(("centavo", "centavos"));
const CENTIMOS: Minor = Some(("cêntimo", "cêntimos"));
const PENCE: Minor = Some(("penny", "pence"));

/// The longer sign before the shorter. Names of codes come from CLDR, their hundredths from here.
pub(super) const CURRENCIES: &[Currency] = &[
    currency("R$", "real", "reais", CENTAVOS),
    currency("US$", "dólar", "dólares", CENTAVOS),
    currency("U$", "dólar", "dólares", CENTAVOS),
    currency("C$", "dólar canadense", "dólares canadenses", CENTAVOS),
    currency("$", "dólar", "dólares", CENTAVOS),
    currency("€", "euro", "euros", CENTIMOS),
    feminine(currency("£", "libra", "libras", PENCE)),
    currency("¥", "iene", "ienes", None),
    feminine(currency("₹", "rupia", "rupias", None)),
    currency("₩", "won", "wons", None),
    currency("₽", "rublo", "rublos", None),
    feminine(currency("₺", "lira", "liras", None)),
    currency("₱", "peso", "pesos", CENTAVOS),
    currency("₿", "bitcoin", "bitcoins", None),
    currency("Kz", "kwanza", "kwanzas", CENTIMOS),
    currency("BRL", "real", "reais", CENTAVOS),
    currency("USD", "dólar americano", "dólares americanos", CENTAVOS),
    currency("EUR", "euro", "euros", CENTIMOS),
    feminine(currency("GBP", "libra esterlina", "libras esterlinas", PENCE)),
    currency("CHF", "franco suíço", "francos suíços", CENTIMOS),
];
