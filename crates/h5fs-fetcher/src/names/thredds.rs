//! Catalogs of a THREDDS data server: InvCatalog 1.0.
//!
//! A directory of files has the catalog `…/thredds/catalog/DIRECTORY/catalog.xml`. The service
//! `HTTPServer` serves its files as `…/thredds/fileServer/DIRECTORY/FILE`. A dataset with a
//! `urlPath` of this form is a file. A `catalogRef` whose `href` is `DIRECTORY/catalog.xml` is a
//! directory. Catalogs may refer to any location; datasets and catalogs outside the directory are
//! ignored.

use h5fs_reader::source::location::percent::percent_decode;

use crate::address::paths::{THREDDS_CATALOG, THREDDS_SERVICES, thredds_files};
use crate::fetch_error::FetchError;
use crate::names::href::{BaseDirectory, HrefTarget};
use crate::names::page::{NameSet, NamesPage};
use crate::names::xml::{self, ElementVisitor, XmlAttributes};

/// The parsed content of a catalog.
struct Catalog<'a> {
    base: &'a BaseDirectory,
    dataset_path: DatasetPath,
    names: NameSet,
    has_files: bool,
    has_service: bool,
}

/// The path at which the server provides the files of a catalog, in two parts.
struct DatasetPath {
    /// Base path of the service `HTTPServer`.
    service: Vec<u8>,
    /// The part of each dataset's `urlPath` that names the directory of the catalog.
    directory: Vec<u8>,
}

/// Parses the catalog at `base`.
///
/// # Errors
/// Fails for an incomplete or invalid catalog, and for a catalog without an `HTTPServer` for its
/// files.
pub(super) fn parse_page(body: &[u8], base: &BaseDirectory) -> Result<NamesPage, FetchError> {
    let mut path = base.path();
    path.push(b'/');
    let path = String::from_utf8_lossy(&path).into_owned();
    let files = thredds_files(path.trim_start_matches('/'));
    let files = files.ok_or_else(|| FetchError::permanent("the catalog is on another server"))?;
    let files = format!("/{files}");
    let [_, service] = THREDDS_SERVICES;
    let end = files.find(service).map_or(0, |at| at + service.len());
    let (service, directory) = files.split_at(end);
    let mut catalog = Catalog {
        base,
        dataset_path: DatasetPath {
            service: service.into(),
            directory: directory.into(),
        },
        names: NameSet::default(),
        has_files: false,
        has_service: false,
    };
    xml::parse_document(body, "catalog", &mut catalog)?;
    if catalog.has_files && !catalog.has_service {
        let text = "the catalog names no service of the type HTTPServer for its files";
        return Err(FetchError::permanent(text));
    }
    Ok(catalog.names.into_page())
}

impl ElementVisitor for Catalog<'_> {
    fn begin(&mut self, path: &[&str], attributes: &XmlAttributes) -> Result<(), FetchError> {
        match path.last() {
            Some(&"service") => {
                let kind = attributes.get("serviceType").unwrap_or_default();
                let base = attributes.get("base").unwrap_or_default();
                self.has_service |=
                    kind.eq_ignore_ascii_case("HTTPServer") && self.is_service(base);
            }
            Some(&("dataset" | "access")) => {
                let place = attributes.get("urlPath").map(str::as_bytes);
                let name =
                    place.and_then(|place| place.strip_prefix(&self.dataset_path.directory[..]));
                if let Some(name) = name
                    && is_name(name)
                {
                    self.has_files = true;
                    self.names.add(name.to_vec(), false)?;
                }
            }
            Some(&"catalogRef") => {
                let directory = attributes
                    .get("href")
                    .and_then(|href| self.subdirectory(href));
                if let Some(name) = directory {
                    self.names.add(name, true)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _path: &[&str], _text: &str) -> Result<(), FetchError> {
        Ok(())
    }
}

impl Catalog<'_> {
    /// Returns whether the base path of a service is the path of the directory's files.
    fn is_service(&self, base: &str) -> bool {
        let path = match base.split_once("://") {
            Some((_, rest)) => rest.find('/').and_then(|at| rest.get(at..)),
            None => Some(base),
        };
        path.is_some_and(|path| percent_decode(path) == self.dataset_path.service)
    }

    /// Returns the name of the subdirectory whose catalog is at `href`. Returns `None` for any
    /// other link.
    fn subdirectory(&self, href: &str) -> Option<Vec<u8>> {
        let directory = href.strip_suffix(THREDDS_CATALOG)?;
        match self.base.resolve(directory) {
            HrefTarget::Child {
                name,
                is_directory: true,
            } => Some(name),
            _ => None,
        }
    }
}

fn is_name(name: &[u8]) -> bool {
    !matches!(name, b"" | b"." | b"..") && !name.contains(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use h5fs_reader::source::remote::message::ListedType;

    /// A catalog of a `datasetScan`, written from the description of InvCatalog 1.0.
    const CATALOG_OF_SCAN: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<catalog xmlns="http://www.unidata.ucar.edu/namespaces/thredds/InvCatalog/v1.0"
    xmlns:xlink="http://www.w3.org/1999/xlink" version="1.2">
  <service name="all" serviceType="Compound" base="">
    <service name="odap" serviceType="OPENDAP" base="/thredds/dodsC/" />
    <service name="http" serviceType="HTTPServer" base="/thredds/fileServer/" />
  </service>
  <dataset name="2026" ID="runs/2026">
    <metadata inherited="true"><serviceName>all</serviceName></metadata>
    <dataset name="A run" ID="runs/2026/a b.nc" urlPath="runs/2026/a b.nc">
      <dataSize units="Mbytes">1.204</dataSize>
      <date type="modified">2026-11-26T10:00:00Z</date>
    </dataset>
    <dataset name="elsewhere" urlPath="other/b.nc" />
    <dataset name="above" urlPath="runs/2026/../c.nc" />
    <dataset name="beneath" urlPath="runs/2026/sub/d.nc" />
    <catalogRef xlink:href="01/catalog.xml" xlink:title="01" ID="runs/2026/01" name="" />
    <catalogRef xlink:href="/thredds/catalog/runs/2026/02/catalog.xml" xlink:title="two" name="" />
    <catalogRef xlink:href="/thredds/catalog/other/catalog.xml" xlink:title="other" name="" />
    <catalogRef xlink:href="https://else.org/thredds/catalog/runs/2026/03/catalog.xml" name="" />
    <catalogRef xlink:href="../catalog.xml" xlink:title="up" name="" />
    <catalogRef xlink:href="04/other.xml" xlink:title="04" name="" />
  </dataset>
</catalog>"#;

    fn read(text: &str) -> Result<Vec<(String, ListedType)>, FetchError> {
        let uri = "https://host/thredds/catalog/runs/2026/catalog.xml";
        let page = parse_page(
            text.as_bytes(),
            &BaseDirectory::from_uri(&uri.parse().unwrap()),
        )?;
        let named = page.names.into_iter().map(|name| {
            let text = String::from_utf8(name.name).unwrap();
            (text, name.entry_type)
        });
        Ok(named.collect())
    }

    #[test]
    fn datasets_are_files_and_catalogs_directories() {
        let wanted = [
            ("01", ListedType::Prefix),
            ("02", ListedType::Prefix),
            ("a b.nc", ListedType::ObjectWithoutMetadata),
        ];
        let wanted = wanted.map(|(name, named)| (name.to_owned(), named));
        assert_eq!(read(CATALOG_OF_SCAN).unwrap(), wanted);
    }

    #[test]
    fn files_are_served_by_the_http_server_service() {
        let without = CATALOG_OF_SCAN.replace("HTTPServer", "WMS");
        assert!(read(&without).unwrap_err().text.contains("HTTPServer"));
        let elsewhere = CATALOG_OF_SCAN.replace("\"/thredds/fileServer/\"", "\"/files/\"");
        assert!(read(&elsewhere).is_err());
        let absolute = "\"https://host/thredds/fileServer/\"";
        let absolute = CATALOG_OF_SCAN.replace("\"/thredds/fileServer/\"", absolute);
        assert_eq!(read(&absolute), read(CATALOG_OF_SCAN));
    }

    #[test]
    fn a_catalog_that_is_cut_anywhere_is_refused() {
        for end in 0..CATALOG_OF_SCAN.len() {
            assert!(read(&CATALOG_OF_SCAN[..end]).is_err(), "{end}");
        }
        assert!(read("<html><head><title>Busy</title></head></html>").is_err());
    }
}
