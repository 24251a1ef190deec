//! Tests that need the finished program: real mounts, processes and files.
//!
//! All tests are in one binary, so that the fixtures are written only once.
//! `tests/fixtures/make.py` writes them with the interpreter in `$H5FS_PYTHON` (by default
//! `python3`), which needs h5py. `scripts/test` sets up both.

mod access;
mod archive;
mod archive_policy;
mod asdf;
mod audience;
mod bench;
mod cached;
mod cf;
mod changes;
mod circles;
mod clouds;
mod command;
mod corpus;
mod counted;
mod crowd;
mod dangling;
mod effort;
mod exact;
mod examples;
mod far;
mod faults;
mod fetcher;
mod fixtures;
mod harness;
mod hdf5_file;
mod helper;
mod hostile;
mod inspect;
mod interactive;
mod interrupted;
mod joined;
mod joined_conventions;
mod joined_followed;
mod joined_told;
mod joined_values;
mod layering;
mod lines;
mod listing;
mod logs;
mod long;
mod messages;
mod metrics;
mod missing;
mod mistakes;
mod neighbours;
mod netcdf;
#[allow(dead_code, reason = "the fetcher's own tests need more of it")]
#[path = "../objects/mod.rs"]
mod objects;
mod packages;
mod pages;
mod parquet;
mod pictures;
mod policy;
mod prefix;
mod proxies;
mod random;
mod reasons;
mod references;
mod remote;
mod sandbox;
mod secrets;
mod selectors;
mod serve;
mod serve_access;
mod serve_clients;
mod served;
mod serving;
mod several;
mod signals;
mod soak;
mod statuses;
mod strings;
mod supervision;
mod swmr;
mod tables;
mod truncated;
mod unread;
mod views;
mod web;
mod webdav;
mod zarr;
