//! Runs text cases from JSON lines.

fn main() {}
