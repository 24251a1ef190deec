//! Header messages: what an object header says about its object (HDF5 3.0, IV.A.2). One file per
//! message that has more than a field or two.

pub mod attribute;
pub mod data_layout;
pub mod dataspace;
pub mod datatype;
pub mod external_files;
pub mod fill_value;
pub mod filter_pipeline;
pub mod link;
pub mod modification_time;
pub mod object_comment;
pub mod on_heap;
pub mod symbol_table;

/// The type numbers of header messages.
pub mod kind {
    /// NIL: room for a message.
    pub const NIL: u16 = 0x00;
    /// Dataspace.
    pub const DATASPACE: u16 = 0x01;
    /// Link info.
    pub const LINK_INFO: u16 = 0x02;
    /// Datatype.
    pub const DATATYPE: u16 = 0x03;
    /// Fill value, old.
    pub const FILL_VALUE_OLD: u16 = 0x04;
    /// Fill value.
    pub const FILL_VALUE: u16 = 0x05;
    /// Link.
    pub const LINK: u16 = 0x06;
    /// External data files.
    pub const EXTERNAL_FILES: u16 = 0x07;
    /// Data layout.
    pub const DATA_LAYOUT: u16 = 0x08;
    /// Data storage – filter pipeline.
    pub const FILTER_PIPELINE: u16 = 0x0b;
    /// Attribute.
    pub const ATTRIBUTE: u16 = 0x0c;
    /// Object comment.
    pub const OBJECT_COMMENT: u16 = 0x0d;
    /// Object modification time, old.
    pub const MODIFICATION_TIME_OLD: u16 = 0x0e;
    /// Shared message table.
    pub const SHARED_MESSAGE_TABLE: u16 = 0x0f;
    /// Object header continuation.
    pub const CONTINUATION: u16 = 0x10;
    /// Symbol table.
    pub const SYMBOL_TABLE: u16 = 0x11;
    /// Object modification time.
    pub const MODIFICATION_TIME: u16 = 0x12;
    /// Driver info.
    pub const DRIVER_INFO: u16 = 0x14;
    /// Attribute info.
    pub const ATTRIBUTE_INFO: u16 = 0x15;
    /// Object reference count.
    pub const REFERENCE_COUNT: u16 = 0x16;
    /// Metadata cache image (HDF5 1.10; not in the specification).
    pub const CACHE_IMAGE: u16 = 0x18;
    /// Types that lead on to others, of which no message may stand elsewhere itself.
    pub const NEVER_SHARED: [u16; 7] = [
        LINK_INFO,
        LINK,
        EXTERNAL_FILES,
        DATA_LAYOUT,
        CONTINUATION,
        SYMBOL_TABLE,
        ATTRIBUTE_INFO,
    ];
    /// The highest number that has a meaning.
    pub const LAST_KNOWN: u16 = 0x18;
}
