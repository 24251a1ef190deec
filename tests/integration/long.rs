//! Searches and extremes that take minutes. `scripts/test --long` and CI run them. Other runs skip
//! them.

use crate::hostile::{listed, memory};
use crate::{corpus, joined_followed, random};

#[test]
#[ignore = "takes half a minute: scripts/test --long"]
fn two_hundred_random_files() {
    random::are_served_as_h5py_reads_them(200);
}

#[test]
#[ignore = "takes half a minute: scripts/test --long"]
fn hdf5_files_of_the_corpus_conform() {
    corpus::hdf5_files_conform();
}

#[test]
#[ignore = "takes minutes: scripts/test --long"]
fn what_is_listed_in_files_of_the_corpus_is_found() {
    if let Some(corpus) = corpus::directory() {
        listed::in_each_file(&corpus);
    }
}

#[test]
#[ignore = "takes a minute: scripts/test --long"]
fn handles_of_joined_files_outlive_a_minute() {
    joined_followed::handles_stay_valid_when_files_are_a_minute_old();
}

#[test]
#[ignore = "takes half a minute: scripts/test --long"]
fn the_largest_trees() {
    memory::largest_trees(&memory::LARGEST_TREES, 2);
}

#[test]
#[ignore = "takes half a minute: scripts/test --long"]
fn many_large_virtual_datasets_that_are_open_at_once() {
    memory::many_large_virtual_datasets_that_are_open_at_once();
}
