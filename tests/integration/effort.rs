//! A request that exhausts its effort budget. A refusal applies to that request alone, and the next
//! request finds the whole file.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use h5fs_reader::detect::{self, Caches};
use h5fs_reader::memory::request_budget::RequestBudget;
use h5fs_reader::model::{Container, LinkTarget, NodeId, NodeKind};
use h5fs_reader::source::local::audience::Readers;
use h5fs_reader::source::local::file::FileSource;
use h5fs_reader::source::neighbours::Neighbours;
use h5fs_reader::source::neighbours::policy::OtherFilesPolicy;

use crate::harness::fixture;

/// Number of links of one group that are also looked up.
const SEARCHED: usize = 20;

fn open(path: &Path) -> Arc<dyn Container> {
    let source = Arc::new(FileSource::open(path, None).expect("fixture"));
    let neighbours = Arc::new(Neighbours::new(
        path,
        OtherFilesPolicy::WithinDirectory,
        None,
        Readers::Owner,
    ));
    detect::open(source, neighbours, &Caches::default(), false).expect("fixture")
}

/// Returns all objects that hard links lead to.
fn nodes(file: &dyn Container) -> Vec<NodeId> {
    let mut nodes = vec![file.root()];
    let mut at = 0;
    while let Some(node) = nodes.get(at).copied() {
        at += 1;
        let Ok(mut links) = file.links(node) else {
            continue;
        };
        while let Some(link) = links.next().expect("a link") {
            if let LinkTarget::Hard(node) = link.target
                && !nodes.contains(&node)
            {
                nodes.push(node);
            }
        }
    }
    nodes
}

/// Describes everything about an object, including errors.
fn description(file: &dyn Container, node: NodeId) -> String {
    let mut text = String::new();
    let mut tell = |what: &dyn std::fmt::Debug| writeln!(text, "{what:?}").expect("memory");
    match file.node(node) {
        Ok(node) => {
            if let NodeKind::Array(array) = &node.kind {
                tell(&(&array.datatype, &array.shape, &array.fill));
                tell(&array.storage.as_ref().err());
            }
            tell(&(&node.error, &node.comment, node.modified, node.link_count));
        }
        Err(error) => tell(&error),
    }
    match file.links(node) {
        Ok(mut links) => {
            for place in 0.. {
                let link = links.next();
                tell(&link);
                let Ok(Some(link)) = link else { break };
                if place < SEARCHED {
                    tell(&file.link(node, &link.name));
                }
            }
        }
        Err(error) => tell(&error),
    }
    let listed = file.attributes(node, &mut |attribute| {
        tell(&attribute);
        ControlFlow::Continue(())
    });
    tell(&listed);
    text
}

/// Returns budgets in bytes, from less than a header to all that a small file needs.
fn budgets() -> impl Iterator<Item = u64> {
    let small = (0..640).step_by(16);
    let middle = (700..6000).step_by(97);
    small
        .chain(middle)
        .chain([8000, 12_000, 20_000, 50_000, 100_000])
}

#[track_caller]
fn is_whole_after_a_refusal(name: &str) {
    let path = fixture(name).canonicalize().expect("path");
    let file = open(&path);
    let nodes = nodes(&*file);
    let describe = |file: &dyn Container| -> Vec<String> {
        nodes.iter().map(|node| description(file, *node)).collect()
    };
    let whole = describe(&*file);
    let mut refused = 0;
    for budget in budgets() {
        let file = open(&path);
        for (node, whole) in nodes.iter().zip(&whole) {
            let granted = {
                let effort = RequestBudget::new(budget);
                description(&*Arc::clone(&file).for_request(&effort), *node)
            };
            refused += usize::from(granted != *whole);
            let again = description(&*file, *node);
            assert!(
                again == *whole,
                "{name}: {node:?} after {budget} bytes: {again}, not {whole}"
            );
        }
    }
    assert!(refused > 0, "{name}: nothing was refused");
}

#[test]
fn of_virtual_datasets() {
    is_whole_after_a_refusal("virtual.earliest.h5");
    is_whole_after_a_refusal("virtual.latest.h5");
}

#[test]
fn of_old_groups() {
    is_whole_after_a_refusal("tiny.earliest.h5");
}

#[test]
fn of_new_groups() {
    is_whole_after_a_refusal("tiny.latest.h5");
}

#[test]
fn of_times_and_comments() {
    is_whole_after_a_refusal("times-and-comments.latest.h5");
}
