//! Currencies and words for many in Spanish.

use crate::text::verbalise::language::{Currency, Magnitude, Minor, currency, feminine};
use crate::text::verbalise::names::Gender;

const fn magnitude(written: &'static str, word: &'static str, linked: bool) -> Magnitude {
    let gender = Gender::Masculine;
    Magnitude { written, one: word, other: word, gender, dotted: false, linked, money_only: false }
}

const fn short(written: &'static str, one: &'static str, other: &'static str) -> Magnitude {
    let gender = Gender::Masculine;
    Magnitude { written, one, other, gender, dotted: false, linked: true, money_only: true }
}

/// As they are written: both numbers of a word stand here.
pub(super) const MAGNITUDES: &[Magnitude] = &[
    Magnitude { linked: false, ..short("mil", "mil", "mil") },
    Magnitude { linked: false, ..short("k", "mil", "mil") },
    Magnitude { linked: false, ..short("K", "mil", "mil") },
    short("M", "millón", "millones"),
    short("MM", "millón", "millones"),
    magnitude("millón", "millón", true),
    magnitude("millones", "millones", true),
    magnitude("mil millones", "mil millones", true),
    magnitude("millardo", "millardo", true),
    magnitude("millardos", "millardos", true),
    magnitude("billón", "billón", true),
    magnitude("billones", "billones", true),
    magnitude("trillón", "trillón", true),
    magnitude("trillones", "trillones", true),
];

const CENTAVOS: Minor = Some(("centavo", "centavos"));
const CENTIMOS: Minor = Some(("céntimo", "céntimos"));
const CENTESIMOS: Minor = Some(("centésimo", "centésimos"));
const PENIQUES: Minor = Some(("penique", "peniques"));

pub(super) const PESO: Currency = currency("$", "peso", "pesos", CENTAVOS);

/// The longer sign before the shorter. Names of codes come from CLDR, their hundredths from here.
pub(super) const CURRENCIES: &[Currency] = &[
    currency("US$", "dólar estadounidense", "dólares estadounidenses", CENTAVOS),
    currency("U$S", "dólar estadounidense", "dólares estadounidenses", CENTAVOS),
    currency("Mex$", "peso mexicano", "pesos mexicanos", CENTAVOS),
    currency("MX$", "peso mexicano", "pesos mexicanos", CENTAVOS),
    currency("C$", "dólar canadiense", "dólares canadienses", CENTAVOS),
    currency("R$", "real", "reales", CENTAVOS),
    currency("S/.", "sol", "soles", CENTIMOS),
    currency("S/", "sol", "soles", CENTIMOS),
    currency("$", "dólar", "dólares", CENTAVOS),
    currency("€", "euro", "euros", CENTIMOS),
    feminine(currency("£", "libra", "libras", PENIQUES)),
    currency("¥", "yen", "yenes", None),
    feminine(currency("₹", "rupia", "rupias", None)),
    currency("₩", "won", "wones", None),
    currency("₽", "rublo", "rublos", Some(("kopek", "kopeks"))),
    feminine(currency("₺", "lira", "liras", None)),
    currency("₱", "peso", "pesos", CENTAVOS),
    currency("₡", "colón", "colones", CENTIMOS),
    currency("₲", "guaraní", "guaraníes", CENTIMOS),
    feminine(currency("₧", "peseta", "pesetas", None)),
    currency("₿", "bitcoin", "bitcoines", None),
    currency("Bs.", "bolívar", "bolívares", CENTIMOS),
    currency("USD", "dólar estadounidense", "dólares estadounidenses", CENTAVOS),
    currency("EUR", "euro", "euros", CENTIMOS),
    currency("MXN", "peso mexicano", "pesos mexicanos", CENTAVOS),
    currency("ARS", "peso argentino", "pesos argentinos", CENTAVOS),
    currency("COP", "peso colombiano", "pesos colombianos", CENTAVOS),
    currency("PEN", "sol peruano", "soles peruanos", CENTIMOS),
    feminine(currency("GBP", "libra esterlina", "libras esterlinas", PENIQUES)),
    currency("CHF", "franco suizo", "francos suizos", CENTIMOS),
    feminine(currency("kr", "corona", "coronas", CENTIMOS)),
    feminine(currency("ptas", "peseta", "pesetas", None)),
    currency("CRC", "colón costarricense", "colones costarricenses", CENTIMOS),
    currency("NIO", "córdoba", "córdobas", CENTAVOS),
    currency("HNL", "lempira", "lempiras", CENTAVOS),
    currency("GTQ", "quetzal", "quetzales", CENTAVOS),
    currency("PAB", "balboa", "balboas", CENTIMOS),
    currency("BOB", "boliviano", "bolivianos", CENTAVOS),
    currency("PYG", "guaraní", "guaraníes", CENTIMOS),
    currency("UYU", "peso uruguayo", "pesos uruguayos", CENTESIMOS),
    currency("DOP", "peso dominicano", "pesos dominicanos", CENTAVOS),
    currency("VES", "bolívar", "bolívares", CENTIMOS),
];
