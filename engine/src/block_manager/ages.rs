//! Blocks that nobody holds, by age: who was let go first is taken first.

/// Block numbers in the order they came, each removable in O(1): a ring of links with one extra entry as its knot.
#[derive(Debug)]
pub(super) struct AgeList {
    links: Vec<Link>,
    len: usize,
}

#[derive(Debug, Clone, Copy)]
struct Link {
    older: u32,
    younger: u32,
}

impl AgeList {
    pub(super) fn new(numbers: u32) -> Self {
        // An entry outside the list points at itself, and so does the knot of an empty one.
        let links = (0..=numbers).map(|i| Link { older: i, younger: i }).collect();
        Self { links, len: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn knot(&self) -> u32 {
        u32::try_from(self.links.len() - 1).expect("made from a u32; this is a bug")
    }

    pub(super) fn push_youngest(&mut self, number: u32) {
        let knot = self.knot();
        let older = std::mem::replace(&mut self.links[knot as usize].older, number);
        self.links[older as usize].younger = number;
        self.links[number as usize] = Link { older, younger: knot };
        self.len += 1;
    }

    pub(super) fn remove(&mut self, number: u32) {
        let Link { older, younger } = self.links[number as usize];
        self.links[older as usize].younger = younger;
        self.links[younger as usize].older = older;
        self.links[number as usize] = Link { older: number, younger: number };
        self.len -= 1;
    }

    pub(super) fn pop_oldest(&mut self) -> Option<u32> {
        let oldest = self.oldest_first().next()?;
        self.remove(oldest);
        Some(oldest)
    }

    pub(super) fn oldest_first(&self) -> impl Iterator<Item = u32> {
        let knot = self.knot();
        let step = move |number: u32| {
            let next = self.links[number as usize].younger;
            (next != knot).then_some(next)
        };
        std::iter::successors(step(knot), move |&number| step(number))
    }
}
