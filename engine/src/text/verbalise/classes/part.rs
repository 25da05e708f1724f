//! Fractions that would be something else in another language.

use super::Reading;
use crate::text::verbalise::scan::Scan;
use crate::text::verbalise::speech::Speech;

/// 5/11, 3/20, 5/3: a fraction whatever its numbers, in languages that write no days so.
pub(in crate::text::verbalise) fn uneven<'a>(
    mut scan: Scan<'a>,
    speech: &Speech,
) -> Option<Reading<'a>> {
    /// Longest number below the stroke.
    const DIGITS_MAX: usize = 3;
    let number = |scan: &mut Scan<'a>| -> Option<u64> {
        let digits: String = scan.digits().iter().collect();
        digits.parse().ok().filter(|_| digits.len() <= DIGITS_MAX)
    };
    let free = scan.before() != Some('/');
    let above = number(&mut scan).filter(|_| free)?;
    scan.eat_if(|c| c == '/' || c == '⁄')?;
    let below = number(&mut scan).filter(|_| scan.at_number_end() && scan.peek() != Some('/'))?;
    // 50/50 and 20/80 are shares, 24/7 is always; what is smaller than one may have a unit behind.
    let share = above == below || above + below == 100 || (above, below) == (24, 7);
    let beat = scan.peek() == Some('-');
    let unusual = if above > below { below <= 10 } else { below > 10 };
    let said = (speech.language().fraction)(speech, above, below)?;
    ((unusual && !share) || beat).then_some((scan, said))
}
