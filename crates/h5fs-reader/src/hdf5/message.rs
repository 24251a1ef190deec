//! Header messages, which describe an object in its object header (HDF5 3.0, IV.A.2). Messages with
//! more than two fields have a file each.

pub(crate) mod attribute;
pub(crate) mod data_layout;
pub(crate) mod dataspace;
pub(crate) mod datatype;
pub(crate) mod external_files;
pub(crate) mod file_space_info;
pub(crate) mod fill_value;
pub(crate) mod filter_pipeline;
pub(crate) mod link;
pub(crate) mod modification_time;
pub(crate) mod object_comment;
pub(crate) mod on_heap;
pub(crate) mod symbol_table;

/// The type numbers of header messages.
pub(crate) mod kind {
    /// Type of the message "NIL", which marks unused space.
    pub(crate) const NIL: u16 = 0x00;
    /// Type of the message "Dataspace".
    pub(crate) const DATASPACE: u16 = 0x01;
    /// Type of the message "Link info".
    pub(crate) const LINK_INFO: u16 = 0x02;
    /// Type of the message "Datatype".
    pub(crate) const DATATYPE: u16 = 0x03;
    /// Type of the message "Fill value, old".
    pub(crate) const FILL_VALUE_OLD: u16 = 0x04;
    /// Type of the message "Fill value".
    pub(crate) const FILL_VALUE: u16 = 0x05;
    /// Type of the message "Link".
    pub(crate) const LINK: u16 = 0x06;
    /// Type of the message "External data files".
    pub(crate) const EXTERNAL_FILES: u16 = 0x07;
    /// Type of the message "Data layout".
    pub(crate) const DATA_LAYOUT: u16 = 0x08;
    /// Type of the message "Group info".
    pub(crate) const GROUP_INFO: u16 = 0x0a;
    /// Type of the message "Data storage – filter pipeline".
    pub(crate) const FILTER_PIPELINE: u16 = 0x0b;
    /// Type of the message "Attribute".
    pub(crate) const ATTRIBUTE: u16 = 0x0c;
    /// Type of the message "Object comment".
    pub(crate) const OBJECT_COMMENT: u16 = 0x0d;
    /// Type of the message "Object modification time, old".
    pub(crate) const MODIFICATION_TIME_OLD: u16 = 0x0e;
    /// Type of the message "Shared message table".
    pub(crate) const SHARED_MESSAGE_TABLE: u16 = 0x0f;
    /// Type of the message "Object header continuation".
    pub(crate) const CONTINUATION: u16 = 0x10;
    /// Type of the message "Symbol table".
    pub(crate) const SYMBOL_TABLE: u16 = 0x11;
    /// Type of the message "Object modification time".
    pub(crate) const MODIFICATION_TIME: u16 = 0x12;
    /// Type of the message "Driver info".
    pub(crate) const DRIVER_INFO: u16 = 0x14;
    /// Type of the message "Attribute info".
    pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;
    /// Type of the message "Object reference count".
    pub(crate) const REFERENCE_COUNT: u16 = 0x16;
    /// Type of the message "File space info".
    pub(crate) const FILE_SPACE_INFO: u16 = 0x17;
    /// Type of the message "metadata cache image" (HDF5 1.10; not in the specification).
    pub(crate) const CACHE_IMAGE: u16 = 0x18;
    /// Message types that are never shared, because they refer to other structures.
    pub(crate) const NEVER_SHARED: [u16; 7] = [
        LINK_INFO,
        LINK,
        EXTERNAL_FILES,
        DATA_LAYOUT,
        CONTINUATION,
        SYMBOL_TABLE,
        ATTRIBUTE_INFO,
    ];
    /// The highest message type that this reader knows.
    pub(crate) const LAST_KNOWN: u16 = 0x18;
}
