//! What a block is found by, written short: a large memory keeps thousands of them.

use super::Content;
use crate::batch::BLOCK_TOKENS;

/// Writes what block `block` of a sequence holds: the position of its first token, how many others do not follow the one
/// before them, each of these with its place and position; then the ids of the tokens, and those beside them. Numbers are
/// told apart and as many as those before them say, so what is written alike is alike.
pub(super) fn write(into: &mut Vec<u8>, block: usize, content: Content<'_>) {
    let tokens = block * BLOCK_TOKENS..(block + 1) * BLOCK_TOKENS;
    let width = content.beside.len() / content.ids.len();
    let positions = &content.positions[tokens.clone()];
    let jumps =
        || (1..BLOCK_TOKENS).filter(|&i| positions[i - 1].checked_add(1) != Some(positions[i]));
    into.clear();
    put(into, positions[0].cast_unsigned());
    put(into, jumps().count() as u32);
    for at in jumps() {
        put(into, at as u32);
        put(into, positions[at].cast_unsigned());
    }
    let beside = &content.beside[tokens.start * width..tokens.end * width];
    content.ids[tokens].iter().chain(beside).for_each(|&id| put(into, id));
}

/// Writes a number in as few bytes as it needs, seven bits in each; the last byte has no eighth.
fn put(into: &mut Vec<u8>, mut number: u32) {
    while number >= 0x80 {
        into.push(number as u8 | 0x80);
        number >>= 7;
    }
    into.push(number as u8);
}
