//! Arithmetic of the CPU runner on plain slices. Knows no model, no batch and no sequence.
//!
//! Every result is bit-identical however many rows a call has and wherever a row falls in it: each sum is one chain of
//! fused multiply-adds in ascending order of its terms, or a fixed number of lanes added in a fixed order. No tile shape
//! and no compiler may reorder them, so this holds by construction.

pub mod attention;
pub mod kv;
pub mod math;
pub mod matrix;
pub mod simd;
pub mod tile;
