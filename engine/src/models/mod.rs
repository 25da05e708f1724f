//! The networks: what a folder's configuration says, and ways to compute it.
//!
//! [`fast`] computes on packed weights; [`qwen3`] are the stages of a voice that run on it, and [`reference::Reference`] is
//! the plain computation that they are held to. [`speech`] are language models that say several streams of codes.

pub mod backbone;
pub mod config;
mod embedding;
pub mod fast;
mod fields;
pub mod qwen3;
pub mod reference;
pub mod speech;
mod tensors;
