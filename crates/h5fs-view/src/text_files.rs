//! Files whose content is text. Some are kept in memory, and some are generated while they are
//! read.
//!
//! | file | content |
//! |---|---|
//! | `text` | a text in memory |
//! | `counted_text` | a text of many equal units: its length is counted, and a read resumes at a unit |
//! | `streamed` | a text that can only be generated from front to back |
//! | `bounds` | limits on the work of counting |

pub mod bounds;
pub mod counted_text;
pub mod streamed;
pub mod text;
