//! Rows of the tables of languages, and what makes them.

use crate::text::verbalise::names::Gender;

/// A word for a power of ten.
#[derive(Debug, Clone, Copy)]
pub(in crate::text::verbalise) struct Magnitude {
    /// As it is written: `million`, `m`.
    pub(in crate::text::verbalise) written: &'static str,
    pub(in crate::text::verbalise) one: &'static str,
    pub(in crate::text::verbalise) other: &'static str,
    pub(in crate::text::verbalise) gender: Gender,
    /// It is written with a period: `Mio.`
    pub(in crate::text::verbalise) dotted: bool,
    /// A noun behind it takes "of": `un millón de euros`.
    pub(in crate::text::verbalise) linked: bool,
    /// Only behind an amount of money: `m` alone is metres.
    pub(in crate::text::verbalise) money_only: bool,
}

/// The hundredth of a currency, for one and many.
pub(in crate::text::verbalise) type Minor = Option<(&'static str, &'static str)>;

/// A currency sign or what is written in its place.
#[derive(Debug, Clone, Copy)]
pub(in crate::text::verbalise) struct Currency {
    pub(in crate::text::verbalise) sign: &'static str,
    pub(in crate::text::verbalise) one: &'static str,
    pub(in crate::text::verbalise) other: &'static str,
    pub(in crate::text::verbalise) gender: Gender,
    /// Its hundredth, for one and many.
    pub(in crate::text::verbalise) minor: Minor,
    pub(in crate::text::verbalise) minor_gender: Gender,
}

/// A masculine currency.
pub(super) const fn currency(
    sign: &'static str,
    one: &'static str,
    other: &'static str,
    minor: Minor,
) -> Currency {
    let gender = Gender::Masculine;
    Currency { sign, one, other, gender, minor, minor_gender: gender }
}

/// One whose name is the same for one and many.
pub(super) const fn same(sign: &'static str, name: &'static str, minor: Minor) -> Currency {
    currency(sign, name, name, minor)
}

/// The same with a feminine name.
pub(super) const fn feminine(currency: Currency) -> Currency {
    Currency { gender: Gender::Feminine, ..currency }
}

/// A short form that is read in full.
#[derive(Debug)]
pub(in crate::text::verbalise) struct Abbreviation {
    /// In lower case, without its last period.
    pub(in crate::text::verbalise) written: &'static str,
    pub(in crate::text::verbalise) spoken: &'static str,
    pub(in crate::text::verbalise) kind: Short,
}

pub(super) const fn short(
    written: &'static str,
    spoken: &'static str,
    kind: Short,
) -> Abbreviation {
    Abbreviation { written, spoken, kind }
}

pub(super) const fn dotted(written: &'static str, spoken: &'static str) -> Abbreviation {
    short(written, spoken, Short::Dotted)
}

pub(super) const fn always(written: &'static str, spoken: &'static str) -> Abbreviation {
    short(written, spoken, Short::Always)
}

pub(super) const fn number(written: &'static str, spoken: &'static str) -> Abbreviation {
    short(written, spoken, Short::Number)
}

pub(super) const fn title(written: &'static str, spoken: &'static str) -> Abbreviation {
    short(written, spoken, Short::Title)
}

/// Where a short form is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::text::verbalise) enum Short {
    /// With its period, wherever it stands.
    Dotted,
    /// With or without its period.
    Always,
    /// Before a name, with or without its period.
    Title,
    /// Before a number.
    Number,
    /// Behind a name, as in an address.
    Behind,
    /// Behind a name and part of it.
    Name,
}
