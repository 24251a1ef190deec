//! A container that shows some nodes of another container differently.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;

use crate::error::Result;
use crate::memory::request_budget::RequestBudget;
use crate::model::Container;
use crate::model::attribute::{Attribute, Reference};
use crate::model::datatype::ReferenceKind;
use crate::model::extras::AsdfExtras;
use crate::model::link::{Link, LinkStream, LinkTarget};
use crate::model::node::{Node, NodeId};
use crate::model::region::Region;

/// A container that shows some nodes or attributes of an inner container differently, and all else
/// as the inner container does.
pub trait ContainerOverlay: Send + Sync + 'static {
    /// Returns the inner container.
    fn inner(&self) -> &Arc<dyn Container>;

    /// Returns the overlay of `inner`, which is the inner container for one request.
    fn with_inner(&self, inner: Arc<dyn Container>, budget: &RequestBudget) -> Arc<dyn Container>;

    /// Returns the node that the overlay shows.
    ///
    /// # Errors
    /// Fails as [`Container::node`] does.
    fn overlay_node(&self, id: NodeId) -> Result<Arc<Node>>;

    /// Returns the attribute that the overlay shows for an attribute of the node `id`, or `None` if
    /// it shows none.
    fn overlay_attribute(&self, _id: NodeId, attribute: Attribute) -> Option<Attribute> {
        Some(attribute)
    }
}

impl<T: ContainerOverlay> Container for T {
    fn node(&self, id: NodeId) -> Result<Arc<Node>> {
        self.overlay_node(id)
    }

    fn for_request(self: Arc<Self>, budget: &RequestBudget) -> Arc<dyn Container> {
        let inner = Arc::clone(self.inner()).for_request(budget);
        self.with_inner(inner, budget)
    }

    fn root(&self) -> NodeId {
        self.inner().root()
    }

    fn is_growing(&self) -> bool {
        self.inner().is_growing()
    }

    fn fresh_view(self: Arc<Self>) -> Option<Arc<dyn Container>> {
        Arc::clone(self.inner()).fresh_view()
    }

    fn weight(&self) -> u64 {
        self.inner().weight()
    }

    fn is_remote(&self) -> bool {
        self.inner().is_remote()
    }

    fn prefetch_nodes(&self, nodes: &[NodeId]) {
        self.inner().prefetch_nodes(nodes);
    }

    fn prefetch_subtree(&self, group: NodeId) {
        self.inner().prefetch_subtree(group);
    }

    fn prefetch_variable_length(&self, elements: &[u8], size: usize) {
        self.inner().prefetch_variable_length(elements, size);
    }

    fn drop_caches(&self) {
        self.inner().drop_caches();
    }

    fn is_likely_group(&self, id: NodeId) -> bool {
        self.inner().is_likely_group(id)
    }

    fn link(&self, group: NodeId, name: &[u8]) -> Result<Option<Link>> {
        self.inner().link(group, name)
    }

    fn links(&self, group: NodeId) -> Result<Box<dyn LinkStream>> {
        self.inner().links(group)
    }

    fn alias_path(&self, target: &LinkTarget) -> Result<Vec<Vec<u8>>> {
        self.inner().alias_path(target)
    }

    fn attributes(
        &self,
        id: NodeId,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        self.inner().attributes(id, &mut |attribute| {
            let shown = self.overlay_attribute(id, attribute);
            shown.map_or(ControlFlow::Continue(()), &mut *visit)
        })
    }

    fn attributes_from(
        &self,
        id: NodeId,
        next: &mut u64,
        visit: &mut dyn FnMut(Attribute) -> ControlFlow<()>,
    ) -> Result<()> {
        self.inner().attributes_from(id, next, &mut |attribute| {
            let shown = self.overlay_attribute(id, attribute);
            shown.map_or(ControlFlow::Continue(()), &mut *visit)
        })
    }

    fn attribute(&self, id: NodeId, name: &[u8]) -> Result<Option<Attribute>> {
        let stored = self.inner().attribute(id, name)?;
        Ok(stored.and_then(|attribute| self.overlay_attribute(id, attribute)))
    }

    fn variable_length_bytes(&self, element: &[u8], base_size: u64) -> Result<Option<u64>> {
        self.inner().variable_length_bytes(element, base_size)
    }

    fn read_variable_length(
        &self,
        element: &[u8],
        base_size: u64,
        part: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        self.inner().read_variable_length(element, base_size, part)
    }

    fn variable_length_offset(&self, element: &[u8]) -> u64 {
        self.inner().variable_length_offset(element)
    }

    fn text_length(&self, element: &[u8]) -> Result<u64> {
        self.inner().text_length(element)
    }

    fn reference(&self, kind: ReferenceKind, element: &[u8]) -> Result<Reference> {
        self.inner().reference(kind, element)
    }

    fn region(&self, element: &[u8]) -> Result<Option<Region>> {
        self.inner().region(element)
    }

    fn encoded_region(&self, element: &[u8]) -> Result<Option<(NodeId, Vec<u8>)>> {
        self.inner().encoded_region(element)
    }

    fn members_csv(&self) -> Option<&[u8]> {
        self.inner().members_csv()
    }

    fn asdf_extras(&self) -> Option<&dyn AsdfExtras> {
        self.inner().asdf_extras()
    }
}
