//! The object server of the tests. Each test program uses only a part of it.

#[allow(dead_code)]
pub(crate) mod server;
#[allow(dead_code)]
pub(crate) mod sigv4;
