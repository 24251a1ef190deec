//! The object server of the tests.

pub(crate) mod server;
pub(crate) mod sigv4;
