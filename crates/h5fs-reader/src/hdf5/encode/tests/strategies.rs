//! Random datatypes, extents and names.

use proptest::prelude::*;
use proptest::strategy::Union;

use crate::model::datatype::{
    BitRange, ByteOrder, Charset, Class, FloatFormat, Member, Normalization, ReferenceKind,
    StringPadding,
};
use crate::model::{Datatype, Shape};

/// Bytes without a NUL.
pub(super) fn text(lengths: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(1..=u8::MAX, lengths)
}

pub(super) fn charset() -> impl Strategy<Value = Charset> {
    prop::sample::select(vec![Charset::Ascii, Charset::Utf8])
}

fn byte_order() -> impl Strategy<Value = ByteOrder> {
    prop::sample::select(vec![ByteOrder::Little, ByteOrder::Big])
}

/// The size of an element, and a range of bits in it.
fn bit_range() -> impl Strategy<Value = (u32, BitRange)> {
    let offset = (1..=8_u16).prop_flat_map(|size| (Just(size), 0..size * 8));
    let range =
        offset.prop_flat_map(|(size, offset)| (Just((size, offset)), 1..=size * 8 - offset));
    range.prop_map(|((size, offset), precision)| (u32::from(size), BitRange { offset, precision }))
}

fn integer() -> impl Strategy<Value = Datatype> {
    (bit_range(), byte_order(), any::<bool>()).prop_map(|((size, bits), order, signed)| Datatype {
        size,
        class: Class::Integer {
            order,
            signed,
            bits,
        },
    })
}

fn float() -> impl Strategy<Value = Datatype> {
    let orders = vec![ByteOrder::Little, ByteOrder::Big, ByteOrder::Vax];
    let normalizations = vec![
        Normalization::None,
        Normalization::Stored,
        Normalization::Implied,
    ];
    let sizes = prop::sample::select(vec![2, 4, 8]);
    let selected = (
        sizes,
        prop::sample::select(orders),
        prop::sample::select(normalizations),
    );
    (selected, any::<u32>()).prop_map(|((size, order, normalization), bias)| {
        let Class::Float(format) = Datatype::ieee(size, order).class else {
            panic!("a float");
        };
        let class = Class::Float(FloatFormat {
            bias,
            normalization,
            ..format
        });
        let size = size.into();
        Datatype { size, class }
    })
}

fn string() -> impl Strategy<Value = Datatype> {
    let paddings = vec![
        StringPadding::NullTerminated,
        StringPadding::NullPadded,
        StringPadding::SpacePadded,
    ];
    let padding = prop::sample::select(paddings);
    (1..400_u32, padding, charset(), any::<bool>()).prop_map(|(length, padding, charset, fixed)| {
        if fixed {
            let class = Class::String { padding, charset };
            return Datatype {
                size: length,
                class,
            };
        }
        let class = Class::VariableString { padding, charset };
        Datatype { size: 16, class }
    })
}

fn enumeration() -> impl Strategy<Value = Datatype> {
    let members = |base: Datatype| {
        let value = prop::collection::vec(any::<u8>(), base.size as usize);
        let members = prop::collection::vec((text(1..20), value), 1..5);
        (Just(base), members)
    };
    integer()
        .prop_flat_map(members)
        .prop_map(|(base, members)| {
            let size = base.size;
            let base = Box::new(base);
            let class = Class::Enumeration { base, members };
            Datatype { size, class }
        })
}

/// A datatype without parts that HDF5 1.8 has.
pub(super) fn plain_datatype() -> impl Strategy<Value = Datatype> {
    let typed = |size, class| Datatype { size, class };
    let time = (1..=8_u16, byte_order()).prop_flat_map(|(size, order)| {
        (0..=size * 8).prop_map(move |precision| {
            let bits = BitRange {
                offset: 0,
                precision,
            };
            let size = size.into();
            let class = Class::Time { order, bits };
            Datatype { size, class }
        })
    });
    let bit_field = (bit_range(), byte_order())
        .prop_map(move |((size, bits), order)| typed(size, Class::Bitfield { order, bits }));
    let opaque =
        (1..400_u32, text(0..249)).prop_map(move |(size, tag)| typed(size, Class::Opaque { tag }));
    prop_oneof![
        integer(),
        float(),
        string(),
        enumeration(),
        time,
        bit_field,
        opaque,
        Just(typed(8, Class::Reference(ReferenceKind::Object))),
        Just(typed(12, Class::Reference(ReferenceKind::Region))),
    ]
}

/// A datatype of a class that HDF5 1.8 does not have.
pub(super) fn converted_datatype() -> impl Strategy<Value = Datatype> {
    let boolean = Datatype {
        size: 1,
        class: Class::Bool,
    };
    let complex = float().prop_map(|part| Datatype {
        size: 2 * part.size,
        class: Class::Complex(Box::new(part)),
    });
    prop_oneof![Just(boolean), complex]
}

/// A compound of `parts` in order, each after a gap, with a gap at its end.
fn compound(parts: Vec<(Vec<u8>, u32, Datatype)>, gap_at_end: u32) -> Datatype {
    let mut end = 0;
    let members = parts.into_iter().map(|(name, gap, datatype)| {
        let offset = end + gap;
        end = offset + datatype.size;
        Member {
            name,
            offset,
            datatype,
        }
    });
    let class = Class::Compound(members.collect());
    let size = end + gap_at_end;
    Datatype { size, class }
}

/// Nested datatypes that end in `leaf`.
pub(super) fn datatype_tree(
    leaf: impl Strategy<Value = Datatype> + 'static,
) -> impl Strategy<Value = Datatype> {
    leaf.prop_recursive(3, 20, 4, |inner| {
        let parts = prop::collection::vec((text(1..20), 0..9_u32, inner.clone()), 1..4);
        let dims = prop::collection::vec(1..4_u32, 0..4);
        let array = (inner.clone(), dims).prop_map(|(base, dims)| Datatype {
            size: base.size * dims.iter().product::<u32>(),
            class: Class::Array {
                base: Box::new(base),
                dims,
            },
        });
        let sequence = inner.prop_map(|base| Datatype {
            size: 16,
            class: Class::VariableLength(Box::new(base)),
        });
        prop_oneof![
            (parts, 0..9_u32).prop_map(|(parts, gap)| compound(parts, gap)),
            array,
            sequence,
        ]
    })
}

/// An extent whose number of elements fits 63 bits if `most` is small.
pub(super) fn shape(most: u64, rank: usize) -> impl Strategy<Value = Shape> {
    let growth = prop_oneof![Just(Some(0)), (1..1000_u64).prop_map(Some), Just(None)];
    let dims = prop::collection::vec((0..=most, growth), 0..=rank);
    let simple = dims.prop_map(|dims| {
        let max = dims
            .iter()
            .map(|(dim, growth)| growth.map(|more| dim + more));
        Shape::Simple {
            max: max.collect(),
            dims: dims.iter().map(|(dim, _)| *dim).collect(),
        }
    });
    Union::new_weighted(vec![(9, simple.boxed()), (1, Just(Shape::Null).boxed())])
}
