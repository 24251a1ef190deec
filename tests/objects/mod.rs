//! The object server of the tests, of which each test program uses a part.

#[allow(dead_code)]
pub(crate) mod server;
#[allow(dead_code)]
pub(crate) mod sigv4;
