//! What the scheduler moves about: token sequences and the groups they run in. Plain integers; knows no network and no policy.
//!
//! ```text
//! ids        [ prefix ......... | generated ]
//!              ^ computed: keys and values stored     ^ len
//! ```

use std::ops::Range;

use crate::ContextId;
use crate::block_manager::{BlockTable, Content};

/// Names a group for as long as the engine lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u64);

/// One token sequence of one stage.
#[derive(Debug, Default)]
pub struct Sequence {
    /// Token ids: the serialised input, then what was generated; of stream 0 where a token has several.
    pub ids: Vec<u32>,
    /// What the tokens say in the streams behind the first, token by token; empty where there is one.
    pub beside: Vec<u32>,
    /// Rotary position of each token; same length as `ids`.
    pub positions: Vec<i32>,
    /// How many leading tokens have their keys and values stored.
    pub computed: usize,
    /// Where they are stored.
    pub table: BlockTable,
    /// Rotary position of the token that will be generated next.
    pub next_position: i32,
    /// Whether its next token is a symbol or a code, no text.
    pub narrow: bool,
    /// Tokens of which it is asked how much each newly sampled one attends to them.
    pub watched: Range<usize>,
}

impl Sequence {
    /// A sequence of which nothing is computed yet.
    ///
    /// # Panics
    /// When the two lists differ in length or are empty; that is a bug of the caller.
    pub fn new(ids: Vec<u32>, positions: Vec<i32>, next_position: i32) -> Self {
        assert!(!ids.is_empty() && ids.len() == positions.len(), "a token has one position");
        let (table, beside) = (BlockTable::default(), Vec::new());
        let narrow = false;
        Self { ids, beside, positions, computed: 0, table, next_position, narrow, watched: 0..0 }
    }

    /// A sequence of rows of ids, `[rows, streams]`, whose positions count from 0.
    ///
    /// # Panics
    /// When there is no row or the last one is not whole; that is a bug of the caller.
    pub fn of_rows(rows: &[u32], streams: usize) -> Self {
        assert!(rows.len().is_multiple_of(streams), "a row has an id of each stream");
        let ids: Vec<u32> = rows.iter().step_by(streams).copied().collect();
        let end = i32::try_from(ids.len()).expect("far fewer tokens than positions");
        let beside = rows.chunks_exact(streams).flat_map(|row| &row[1..]).copied().collect();
        Self { beside, ..Self::new(ids, (0..end).collect(), end) }
    }

    /// What decides whether its keys and values are those of another.
    pub fn content(&self) -> Content<'_> {
        Content { ids: &self.ids, beside: &self.beside, positions: &self.positions }
    }

    /// Ids that a token has behind its first.
    pub fn others(&self) -> usize {
        self.beside.len() / self.ids.len()
    }

    /// Tokens that must still run.
    pub fn remaining(&self) -> usize {
        self.ids.len() - self.computed
    }
}

/// What is admitted, preempted, run to its next token, finished and freed together: one sequence, or a guidance pair.
#[derive(Debug)]
pub struct Group {
    /// Its name.
    pub id: GroupId,
    /// Whose work it is.
    pub context: ContextId,
    /// Which network runs it, 0 based.
    pub stage: usize,
    /// The sequences: the conditional one first, then its null companion if there is one.
    pub members: Vec<Sequence>,
    /// Whether blocks are held. A group that waits or was preempted holds none.
    pub resident: bool,
    /// Whether more of its prompt is to come: what is there runs, and nothing is sampled from it.
    pub growing: bool,
}

impl Group {
    /// How many sequences it takes in a batch.
    pub fn cost(&self) -> usize {
        self.members.len()
    }

    /// Tokens that must run before the next one can be sampled.
    pub fn remaining(&self) -> usize {
        self.members.iter().map(Sequence::remaining).sum()
    }

    /// Whether each member needs just its newest token, so that the next one can be sampled.
    pub fn decodes(&self) -> bool {
        !self.growing && self.members.iter().all(|m| m.remaining() == 1)
    }

    /// How many shares of attention come with the logits of a completed step.
    pub fn watched(&self) -> usize {
        self.members.iter().map(|m| m.watched.len()).sum()
    }

    /// Appends the sampled token, an id of each stream, to every member.
    ///
    /// # Panics
    /// When the row has more ids or fewer than a token has; that is a bug of the caller.
    pub fn append(&mut self, row: &[u32]) {
        for member in &mut self.members {
            assert_eq!(row.len(), 1 + member.others(), "an id of each stream; this is a bug");
            member.ids.push(row[0]);
            member.beside.extend_from_slice(&row[1..]);
            member.positions.push(member.next_position);
            member.next_position += 1;
        }
    }

    /// Blocks held.
    pub fn blocks(&self) -> usize {
        self.members.iter().map(|m| m.table.blocks().len()).sum()
    }
}
