//! Entries of a zip archive that are stored as they are, also those of one beyond 4 GiB.

use std::collections::BTreeMap;
use std::ops::Range;

const END: &[u8] = b"PK\x05\x06";
const END_64: &[u8] = b"PK\x06\x06";
const END_64_LOCATOR: &[u8] = b"PK\x06\x07";
const CENTRAL: &[u8] = b"PK\x01\x02";
const LOCAL: &[u8] = b"PK\x03\x04";
/// Bytes of the end record without its comment, and of the comment at most.
const END_BYTES: usize = 22;
const COMMENT_BYTES: usize = 65_535;
/// Stands where a number has no room; the real one is in a field of this kind.
const ELSEWHERE: usize = u32::MAX as usize;
const ZIP64_FIELD: usize = 1;

/// Name and place of every entry.
pub(super) fn entries(file: &[u8]) -> Result<BTreeMap<&str, Range<usize>>, String> {
    let cut = || "the archive is truncated or not a zip archive".to_owned();
    let mut rest = directory(file).ok_or_else(cut)?;
    let mut entries = BTreeMap::new();
    while rest.starts_with(CENTRAL) {
        let half = |at| number::<2>(rest, at).ok_or_else(cut);
        let (method, name, extra, comment) = (half(10)?, half(28)?, half(30)?, half(32)?);
        let fields = 46 + name;
        let name =
            rest.get(46..fields).and_then(|n| std::str::from_utf8(n).ok()).ok_or_else(cut)?;
        if method != 0 {
            return Err(format!("entry `{name}` is compressed; torch stores its entries plain"));
        }
        let extras = rest.get(fields..fields + extra).ok_or_else(cut)?;
        entries.insert(name, place(file, rest, extras).ok_or_else(cut)?);
        rest = rest[fields + extra..].get(comment..).ok_or_else(cut)?;
    }
    Ok(entries)
}

/// The list of entries, from its beginning on.
fn directory(file: &[u8]) -> Option<&[u8]> {
    let first = file.len().saturating_sub(END_BYTES + COMMENT_BYTES);
    let end = file[first..].windows(END_BYTES).rposition(|w| w.starts_with(END))? + first;
    let mut start = number::<4>(file, end + 16)?;
    let locator = end.checked_sub(20).and_then(|at| file.get(at..end));
    if let Some(locator) = locator.filter(|l| l.starts_with(END_64_LOCATOR)) {
        let record = file.get(number::<8>(locator, 8)?..)?;
        start = number::<8>(record.strip_prefix(END_64)?, 48 - END_64.len())?;
    }
    file.get(start..)
}

/// Where the data of the entry lies whose header `central` begins with.
fn place(file: &[u8], central: &[u8], mut extras: &[u8]) -> Option<Range<usize>> {
    let short = [number::<4>(central, 24)?, number::<4>(central, 20)?, number::<4>(central, 42)?];
    let mut wide: &[u8] = &[];
    while let (Some(kind), Some(length)) = (number::<2>(extras, 0), number::<2>(extras, 2)) {
        let (field, rest) = extras.split_at_checked(4 + length)?;
        if kind == ZIP64_FIELD {
            wide = &field[4..];
        }
        extras = rest;
    }
    // Size, stored size and place, in this order, those only that have no room in the header.
    let mut numbers = short;
    for value in &mut numbers {
        if *value == ELSEWHERE {
            *value = number::<8>(wide, 0)?;
            wide = &wide[8..];
        }
    }
    let [size, _, local] = numbers;
    let header = file.get(local..).filter(|h| h.starts_with(LOCAL))?;
    let lengths = number::<2>(header, 26)? + number::<2>(header, 28)?;
    let start = local.checked_add(30 + lengths)?;
    let end = start.checked_add(size)?;
    (end <= file.len()).then_some(start..end)
}

/// A little-endian number of `N` bytes.
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(N)?)?;
    let value = bytes.iter().rev().fold(0_u64, |value, &b| value << 8 | u64::from(b));
    usize::try_from(value).ok()
}
