//! A directory on a web server, whose names are listed by one of several protocols. Single names
//! are looked up separately.
//!
//! The first listing determines the protocol of a server:
//!
//! - THREDDS catalogs and Hugging Face datasets are recognised by their URLs.
//! - An index page is recognised by its content.
//! - Any other server is asked for WebDAV properties.
//!
//! A name is looked up by a HEAD request. If the server redirects to the same path with a `/`, the
//! name is a directory.

use std::sync::OnceLock;

use h5fs_reader::memory::lock::lock;
use h5fs_reader::source::remote::message::{FailureKind, ListedType};
use http::{HeaderMap, Uri};

use crate::address::listing::ListingProtocol;
use crate::address::{FetchTarget, SourceAddress, paths};
use crate::client::{self, HttpResponse};
use crate::exchange::{RequestSender, TargetBuilder, leads_to_directory};
use crate::fetch_error::{FetchError, RetryAction};
use crate::limits;
use crate::names::href::BaseDirectory;
use crate::names::page::{NameSet, NamesPage, listed_name};
use crate::names::{index, thredds, tree, webdav};
use crate::page_budget::PageReservation;
use crate::retries::RetryBudget;
use crate::transfer::{Transfer, TransferStop, is_encoded, parse_state};

/// The protocol by which the server of a mount lists names, once it is known.
#[derive(Debug, Default)]
pub(crate) struct ServerProtocol(OnceLock<ListingProtocol>);

/// A request for the names in a directory of a web server, or for a single name.
pub(crate) struct NamesRequest<'a> {
    pub(crate) server_protocol: &'a ServerProtocol,
    pub(crate) exchange: &'a RequestSender,
    /// The requested path, relative to the URL's directory. It is a directory that ends with `/`, a
    /// single name, or empty for the URL's directory itself.
    pub(crate) prefix: &'a [u8],
    /// The memory that is reserved for the page.
    pub(crate) reservation: &'a PageReservation<'a>,
}

impl NamesRequest<'_> {
    /// Returns the names in the requested directory. For a single name, returns the name if it
    /// exists.
    ///
    /// # Errors
    /// Fails with the server's error, also if the server does not list the directory.
    pub(crate) fn fetch_names(&self, patience: RetryBudget<'_>) -> Result<NamesPage, TransferStop> {
        if self.prefix.is_empty() || self.prefix.ends_with(b"/") {
            return self.retry(patience, |transfer| self.list(transfer));
        }
        let named = self.retry(patience, |transfer| self.look_up(transfer))?;
        let name = self.prefix.rsplit(|byte| *byte == b'/').next();
        let found = named.and_then(|named| listed_name(name.unwrap_or_default(), named));
        Ok(NamesPage {
            names: found.into_iter().collect(),
            next: String::new(),
        })
    }

    /// Calls `act` until it succeeds, the time limit elapses, or another attempt cannot help.
    fn retry<T>(
        &self,
        patience: RetryBudget<'_>,
        act: impl Fn(&Transfer<'_>) -> Result<T, FetchError>,
    ) -> Result<T, TransferStop> {
        let wanted = |address: &SourceAddress, _: &str| {
            address.directory_target(self.prefix, ListingProtocol::Index)
        };
        let mut transfer = Transfer::new(self.exchange, &wanted, patience);
        loop {
            match act(&transfer) {
                Ok(found) => return Ok(found),
                Err(trouble) => {
                    self.reservation.release();
                    transfer.wait_to_retry(TransferStop::Failed(trouble))?;
                }
            }
        }
    }

    fn protocol(&self) -> Option<ListingProtocol> {
        let directory = self.exchange.address.url().directory();
        let of_catalog = paths::thredds_files(directory).map(|_| ListingProtocol::Catalog);
        let of_tree = || paths::dataset_listing(directory).map(|_| ListingProtocol::DatasetTree);
        let known = of_catalog.or_else(of_tree);
        known.or_else(|| self.server_protocol.0.get().copied())
    }

    fn list(&self, transfer: &Transfer<'_>) -> Result<NamesPage, FetchError> {
        if let Some(protocol) = self.protocol() {
            return self.request_page(transfer, self.prefix, protocol);
        }
        let first = match self.request_page(transfer, self.prefix, ListingProtocol::Index) {
            Ok(page) => {
                let _ = self.server_protocol.0.set(ListingProtocol::Index);
                return Ok(page);
            }
            Err(trouble) => trouble,
        };
        if first.retry_action != RetryAction::None || first.failure == FailureKind::NotFound {
            return Err(first);
        }
        match self.request_page(transfer, self.prefix, ListingProtocol::WebDav) {
            Ok(page) => {
                let _ = self.server_protocol.0.set(ListingProtocol::WebDav);
                Ok(page)
            }
            Err(_) if self.exchange.login.is_configured() => Err(expired_login_error(first.text)),
            Err(_) => Err(first),
        }
    }

    /// Requests the listing of the directory `prefix` in one protocol.
    fn request_page(
        &self,
        transfer: &Transfer<'_>,
        prefix: &[u8],
        protocol: ListingProtocol,
    ) -> Result<NamesPage, FetchError> {
        if protocol == ListingProtocol::DatasetTree {
            return self.request_dataset_pages(transfer, prefix);
        }
        let wanted = |address: &SourceAddress, _: &str| address.directory_target(prefix, protocol);
        let (body, headers) = with_target(transfer, &wanted).request_page(self.reservation)?;
        let target = wanted(&self.exchange.address, "")?;
        self.check_login(&target, protocol, &body, &headers)?;
        let base =
            BaseDirectory::from_uri(&self.redirect_target(&target.uri).unwrap_or(target.uri));
        match protocol {
            ListingProtocol::Catalog => thredds::parse_page(&body, &base),
            ListingProtocol::WebDav => webdav::parse_page(&body, &base),
            ListingProtocol::Index | ListingProtocol::DatasetTree => {
                index::parse_page(&body, &base)?.ok_or_else(|| {
                    let text = format!(
                        "{}: the server lists no names, neither with an index page nor with WebDAV",
                        target.shown_url
                    );
                    self.not_index_error(text)
                })
            }
        }
    }

    /// Requests all pages of a Hugging Face directory. Each page names the next page.
    fn request_dataset_pages(
        &self,
        transfer: &Transfer<'_>,
        prefix: &[u8],
    ) -> Result<NamesPage, FetchError> {
        let mut names = NameSet::default();
        let within = self.exchange.address.url().directory().to_owned();
        let within = [tree::path_in_dataset(&within), prefix.to_vec()];
        let within = within.map(|part| part.strip_suffix(b"/").unwrap_or(&part).to_vec());
        let within = within.into_iter().filter(|part| !part.is_empty());
        let within = within.collect::<Vec<_>>().join(&b'/');
        let mut query: Option<String> = None;
        for _ in 0..limits::LISTED_PAGES {
            let wanted = |address: &SourceAddress, _: &str| {
                address.directory_page_target(
                    prefix,
                    ListingProtocol::DatasetTree,
                    query.as_deref(),
                )
            };
            let (body, headers) = with_target(transfer, &wanted).request_page(self.reservation)?;
            let target = wanted(&self.exchange.address, "")?;
            self.check_login(&target, ListingProtocol::DatasetTree, &body, &headers)?;
            tree::add_page_names(&body, &within, &mut names)?;
            let next = tree::next_page_query(&headers)?;
            match next {
                None => return Ok(names.into_page()),
                Some(next) if query.as_ref() == Some(&next) => break,
                next => query = next,
            }
        }
        Err(FetchError::permanent("the server's listing has no end"))
    }

    /// Fails if the server sends a login page instead of names.
    fn check_login(
        &self,
        target: &FetchTarget,
        protocol: ListingProtocol,
        body: &[u8],
        headers: &HeaderMap,
    ) -> Result<(), FetchError> {
        let is_odd = protocol != ListingProtocol::Index
            && self.exchange.login.is_configured()
            && client::is_html(headers);
        if !is_odd && !index::is_login_page(body) {
            return Ok(());
        }
        let text = "the server sends a page instead of the names, possibly a login page";
        let trouble = FetchError::login_needed(format!("{}: {text}", target.shown_url));
        Err(self.exchange.with_login_hint(trouble, target))
    }

    /// Returns the failure for a page that is not an index page. If the server has listed names
    /// before, the failure is temporary, or with a configured login, a failure that a new login may
    /// repair.
    fn not_index_error(&self, text: String) -> FetchError {
        match self.server_protocol.0.get() {
            Some(_) if self.exchange.login.is_configured() => expired_login_error(text),
            Some(_) => FetchError::temporary(text),
            None => FetchError::permanent(text),
        }
    }

    /// Returns the remembered destination of a redirect from this URI, or `None` if there was no
    /// redirect.
    fn redirect_target(&self, uri: &Uri) -> Option<Uri> {
        lock(&self.exchange.redirects).get(uri).cloned()
    }

    /// Looks up the requested single name. Returns `None` if it does not exist.
    fn look_up(&self, transfer: &Transfer<'_>) -> Result<Option<ListedType>, FetchError> {
        let found = match self.protocol() {
            Some(ListingProtocol::WebDav) => self.look_up_properties(transfer)?,
            Some(protocol @ (ListingProtocol::Catalog | ListingProtocol::DatasetTree)) => {
                match self.look_up_object(transfer)? {
                    None => self.look_up_directory(transfer, protocol)?,
                    found => return Ok(found),
                }
            }
            Some(ListingProtocol::Index) | None => Some(ListedType::ObjectWithoutMetadata),
        };
        match found {
            Some(ListedType::ObjectWithoutMetadata) => self.look_up_object(transfer),
            found => Ok(found),
        }
    }

    /// Looks up the requested name by requesting its WebDAV properties.
    fn look_up_properties(
        &self,
        transfer: &Transfer<'_>,
    ) -> Result<Option<ListedType>, FetchError> {
        let page =
            found_or_none(self.request_page(transfer, self.prefix, ListingProtocol::WebDav))?;
        let first = page.and_then(|page| page.names.into_iter().next());
        Ok(first.map(|name| name.entry_type))
    }

    /// Looks up the requested name as a directory, by requesting its listing.
    fn look_up_directory(
        &self,
        transfer: &Transfer<'_>,
        protocol: ListingProtocol,
    ) -> Result<Option<ListedType>, FetchError> {
        let directory = [self.prefix, b"/"].concat();
        let page = found_or_none(self.request_page(transfer, &directory, protocol))?;
        Ok(page.map(|_| ListedType::Prefix))
    }

    /// Looks up the requested name as an object, with a HEAD request. If the server rejects HEAD,
    /// requests the first byte of the object.
    fn look_up_object(&self, transfer: &Transfer<'_>) -> Result<Option<ListedType>, FetchError> {
        let wanted = |address: &SourceAddress, _: &str| address.head_target(self.prefix);
        let left = transfer
            .retry_budget
            .remaining()
            .min(self.exchange.client.step_timeout);
        let allowed = transfer.retry_budget.attempt_limit(left);
        let answer = match self.exchange.request(&wanted, &[], &allowed) {
            Ok(answer) => answer,
            Err(trouble) if trouble.failure == FailureKind::NotFound => return Ok(None),
            Err(trouble) if trouble.retry_action != RetryAction::None => return Err(trouble),
            Err(_) => return self.look_up_by_range(transfer),
        };
        if self.leads_to_directory()? {
            return Ok(Some(ListedType::Prefix));
        }
        // A request for a range distinguishes an object from a login page.
        let may_be_page = answer.is_html() && self.exchange.login.is_configured();
        match content_length(&answer).filter(|_| !may_be_page) {
            Some(length) => {
                parse_state(&answer, length).map(|state| Some(ListedType::Object(state)))
            }
            None => self.look_up_by_range(transfer),
        }
    }

    fn look_up_by_range(&self, transfer: &Transfer<'_>) -> Result<Option<ListedType>, FetchError> {
        let wanted = |address: &SourceAddress, _: &str| address.object_target(self.prefix, "");
        let found = with_target(transfer, &wanted).request_state();
        // Directory pages are served without ranges.
        if self.leads_to_directory()? {
            return Ok(Some(ListedType::Prefix));
        }
        Ok(found_or_none(found)?.map(ListedType::Object))
    }

    /// Returns whether the server has redirected from the requested name to the same path with a
    /// `/`.
    fn leads_to_directory(&self) -> Result<bool, FetchError> {
        let target = self.exchange.address.head_target(self.prefix)?;
        let way = self.redirect_target(&target.uri);
        Ok(way.is_some_and(|way| leads_to_directory(&target.uri, &way)))
    }
}

/// Returns a transfer of another target, with the same time limits.
fn with_target<'a>(transfer: &'a Transfer<'_>, wanted: &'a TargetBuilder<'a>) -> Transfer<'a> {
    Transfer::new(transfer.exchange, wanted, transfer.retry_budget.clone())
}

/// Returns the failure of a listing for which a new login may help.
fn expired_login_error(text: String) -> FetchError {
    FetchError::login_needed(text + "; the login may have expired")
}

/// Converts the result of a look-up: a `NotFound` failure becomes `None`.
fn found_or_none<T>(found: Result<T, FetchError>) -> Result<Option<T>, FetchError> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(trouble) if trouble.failure == FailureKind::NotFound => Ok(None),
        Err(trouble) => Err(trouble),
    }
}

/// Returns the length of the object according to the headers of a response. Returns `None` if the
/// response has no length, is encoded, or has another status than 200.
fn content_length(answer: &HttpResponse) -> Option<u64> {
    let is_whole = answer.status == 200 && !is_encoded(answer);
    let length = answer.header("content-length").filter(|_| is_whole)?;
    length.parse().ok()
}
