//! The h5fs command.

fn main() {}
