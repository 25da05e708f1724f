//! The networks of the stages: what a folder's configuration says, and two ways to compute it.
//!
//! [`qwen3::Qwen3`] is the fast one, [`reference::Reference`] the plain one that it is held to.

pub mod config;
mod embedding;
pub mod qwen3;
pub mod reference;
mod tensors;
