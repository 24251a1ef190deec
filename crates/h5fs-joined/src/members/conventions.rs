//! Finds the arrays of a member to which the rules of AnnData, pandas or HDMF apply.
//!
//! | convention | attribute | rules |
//! |---|---|---|
//! | [AnnData](anndata) | `encoding-type` | rows of `obs`, `X`, `layers`, `obsm`; categories; csr |
//! | [pandas](pandas) | `pandas_type` | rows of both formats; categories in `meta` |
//! | [HDMF, NWB](hdmf) | `colnames` and `id` | rows of tables; lists; references to rows |

mod anndata;
pub(super) mod described;
mod hdmf;
mod pandas;

use h5fs_reader::error::Result;

use crate::members::convention::{ConventionRules, MemberTable};
use crate::members::conventions::described::MemberObjects;
use crate::paths::Path;

/// Returns the rules for each array of a member, and the tables of the member.
///
/// # Errors
/// Fails if an attribute cannot be read now.
pub(super) fn find_conventions(
    file: &MemberObjects<'_>,
) -> Result<(Vec<ConventionRules>, Vec<MemberTable>)> {
    let mut conventions = Vec::with_capacity(file.arrays.len());
    for found in file.arrays {
        conventions.push(convention(file, &found.path)?);
    }
    let mut tables = Vec::new();
    for (_, path) in file.groups {
        let table = anndata::table(file, path)
            .or_else(|| hdmf::table(file, path))
            .or_else(|| pandas::table(file, path));
        tables.extend(table);
    }
    Ok((conventions, tables))
}

fn convention(file: &MemberObjects<'_>, path: &Path) -> Result<ConventionRules> {
    if let Some(own) = anndata::convention(file, path)? {
        return Ok(own);
    }
    if let Some(own) = pandas::convention(file, path) {
        return Ok(own);
    }
    Ok(hdmf::convention(file, path)?.unwrap_or_default())
}
