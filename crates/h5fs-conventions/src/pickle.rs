//! Python pickles of plain data: texts, numbers, lists, dictionaries, and NumPy arrays. Functions
//! are never called: an object is represented by the name of its class, its arguments and its
//! state.
//!
//! A pickle is a program for a stack machine. A pickle with an operation that plain data does not
//! need is unsupported.

use std::borrow::Cow;
use std::collections::HashMap;

use h5fs_reader::memory::allocation_size;
use h5fs_reader::wire::{to_u64, to_usize};

use crate::limits;

/// The index of a value among all values of its pickle. A value may be contained in several other
/// values, and in itself.
pub type ValueIndex = usize;

/// A value that a pickle creates.
#[derive(Debug, Clone, PartialEq)]
pub enum PickleValue {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An integer of at most 64 bits.
    Integer(i64),
    /// A float.
    Float(f64),
    /// A text in UTF-8, or bytes.
    Text(Box<[u8]>),
    /// A list or a tuple.
    List(Vec<ValueIndex>),
    /// A dictionary: its keys and values.
    Dictionary(Vec<(ValueIndex, ValueIndex)>),
    /// A function or class: its module and its name.
    Global(ValueIndex, ValueIndex),
    /// An object: the result of calling `callable` with `arguments`, and the state that is then
    /// assigned to it.
    Object {
        /// The function or class.
        callable: ValueIndex,
        /// The tuple of the arguments of the call.
        arguments: ValueIndex,
        /// The state that is assigned to the new object; `None` if the pickle assigns none.
        state: Option<ValueIndex>,
    },
}

/// A parsed pickle: all its values.
#[derive(Debug)]
pub struct Pickle {
    values: Vec<PickleValue>,
    top: ValueIndex,
}

impl Pickle {
    /// Parses a pickle; `None` if the pickle is damaged or unsupported.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        PickleMachine::new(bytes).run()
    }

    /// Returns the index of the value that the whole pickle represents.
    pub fn root_value(&self) -> ValueIndex {
        self.top
    }

    /// Returns the value with this index.
    pub fn get(&self, index: ValueIndex) -> Option<&PickleValue> {
        self.values.get(index)
    }

    /// Returns whether a value is Python's `None`.
    pub fn is_none(&self, index: ValueIndex) -> bool {
        self.get(index) == Some(&PickleValue::None)
    }

    /// Returns the items of a list or a tuple; `None` for any other value.
    pub fn items(&self, index: ValueIndex) -> Option<&[ValueIndex]> {
        match self.get(index)? {
            PickleValue::List(items) => Some(items),
            _ => None,
        }
    }

    /// Returns the bytes of a text, or an integer as decimal text; `None` for any other value.
    pub fn text(&self, index: ValueIndex) -> Option<Cow<'_, [u8]>> {
        match self.get(index)? {
            PickleValue::Text(text) => Some(Cow::Borrowed(text)),
            PickleValue::Integer(number) => Some(number.to_string().into_bytes().into()),
            _ => None,
        }
    }

    /// Returns whether a value is the function or class `name` in a module whose name ends with
    /// `module`.
    pub fn is_global(&self, index: ValueIndex, module: &[u8], name: &[u8]) -> bool {
        let Some(&PickleValue::Global(own_module, own_name)) = self.get(index) else {
            return false;
        };
        let is_module = |text: Cow<'_, [u8]>| text.ends_with(module);
        self.text(own_module).is_some_and(is_module) && self.text(own_name).as_deref() == Some(name)
    }

    /// Returns the approximate memory of the parsed pickle in bytes.
    pub fn weight(&self) -> u64 {
        let own = |value: &PickleValue| match value {
            PickleValue::Text(text) => allocation_size(text.len()),
            PickleValue::List(items) => allocation_size(size_of_val(&items[..])),
            PickleValue::Dictionary(pairs) => allocation_size(size_of_val(&pairs[..])),
            _ => 0,
        };
        let values = to_u64(size_of_val(&self.values[..]));
        self.values
            .iter()
            .map(own)
            .fold(values, u64::saturating_add)
    }

    /// Returns an integer that is not negative; `None` for a negative integer and for any other
    /// value.
    pub fn unsigned_integer(&self, index: ValueIndex) -> Option<usize> {
        match self.get(index)? {
            PickleValue::Integer(number) => usize::try_from(*number).ok(),
            _ => None,
        }
    }

    /// Returns an integer; `None` for any other value.
    pub fn integer(&self, index: ValueIndex) -> Option<i64> {
        match self.get(index)? {
            PickleValue::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the name of the function that creates an object, and its arguments; `None` for any
    /// other value.
    pub fn constructor_call(&self, index: ValueIndex) -> Option<(&[u8], &[ValueIndex])> {
        let &PickleValue::Object {
            callable,
            arguments,
            ..
        } = self.get(index)?
        else {
            return None;
        };
        let &PickleValue::Global(_, name) = self.get(callable)? else {
            return None;
        };
        match self.get(name)? {
            PickleValue::Text(name) => Some((name, self.items(arguments)?)),
            _ => None,
        }
    }

    /// Returns the keys and values of a dictionary; empty for any other value.
    pub fn pairs(&self, index: ValueIndex) -> &[(ValueIndex, ValueIndex)] {
        match self.get(index) {
            Some(PickleValue::Dictionary(pairs)) => pairs,
            _ => &[],
        }
    }

    /// Returns the value of `key` in a dictionary; `None` if there is no such key. If the
    /// dictionary repeats the key, the last value is returned.
    pub fn value(&self, dictionary: ValueIndex, key: &[u8]) -> Option<ValueIndex> {
        let is_key = |index| self.text(index).as_deref() == Some(key);
        let mut pairs = self.pairs(dictionary).iter().rev();
        pairs
            .find(|(name, _)| is_key(*name))
            .map(|(_, value)| *value)
    }
}

/// The stack machine that executes a pickle.
struct PickleMachine<'a> {
    rest: &'a [u8],
    values: Vec<PickleValue>,
    stack: Vec<ValueIndex>,
    /// The length of the stack at each `MARK` operation whose items were not popped yet.
    marks: Vec<usize>,
    memo: HashMap<u64, ValueIndex>,
    /// The total number of items in all lists and dictionaries.
    item_count: usize,
}

impl<'a> PickleMachine<'a> {
    fn new(program: &'a [u8]) -> Self {
        PickleMachine {
            rest: program,
            values: Vec::new(),
            stack: Vec::new(),
            marks: Vec::new(),
            memo: HashMap::new(),
            item_count: 0,
        }
    }

    fn run(mut self) -> Option<Pickle> {
        loop {
            let operation = self.next_byte()?;
            if operation == b'.' {
                let top = self.pop()?;
                let values = self.values;
                return Some(Pickle { values, top });
            }
            match self.execute_scalar(operation) {
                Some(done) => done?,
                None => self.execute_collection(operation)?,
            }
            let own = [&self.stack, &self.marks]
                .map(Vec::len)
                .iter()
                .sum::<usize>();
            let values = self.values.len() + self.memo.len() + own;
            if values > limits::PICKLE_VALUES || self.item_count > limits::PICKLE_PLACES {
                return None;
            }
        }
    }

    /// Executes `operation` if it creates a single value. Returns `None` for any other operation,
    /// and `Some(None)` if the operation fails.
    fn execute_scalar(&mut self, operation: u8) -> Option<Option<()>> {
        let value = match operation {
            b'N' => Some(PickleValue::None),
            0x88 => Some(PickleValue::Bool(true)),
            0x89 => Some(PickleValue::Bool(false)),
            b'I' => self.next_line().and_then(|line| match line {
                b"00" => Some(PickleValue::Bool(false)),
                b"01" => Some(PickleValue::Bool(true)),
                line => parse_decimal(line).map(PickleValue::Integer),
            }),
            b'L' => self.next_line().and_then(|line| {
                let digits = line.strip_suffix(b"L").unwrap_or(line);
                parse_decimal(digits).map(PickleValue::Integer)
            }),
            b'J' => self.next_unsigned(4).map(|bits| {
                let bits = u32::try_from(bits).unwrap_or(0);
                PickleValue::Integer(bits.cast_signed().into())
            }),
            b'K' => self.next_unsigned(1).map(integer),
            b'M' => self.next_unsigned(2).map(integer),
            0x8a => self.next_signed().map(PickleValue::Integer),
            b'F' => self.next_line().and_then(|line| {
                let text = str::from_utf8(line).ok()?;
                text.parse().ok().map(PickleValue::Float)
            }),
            b'G' => self
                .next_bytes(8)
                .and_then(|bytes| <[u8; 8]>::try_from(bytes).ok())
                .map(|bytes| PickleValue::Float(f64::from_be_bytes(bytes))),
            b'S' => self.next_line().and_then(parse_quoted_text).map(text),
            b'V' => self.next_line().and_then(parse_raw_unicode).map(text),
            b'U' | b'C' | 0x8c => self.next_counted_bytes(1).map(text),
            b'T' | b'X' | b'B' => self.next_counted_bytes(4).map(text),
            0x8d | 0x8e => self.next_counted_bytes(8).map(text),
            b'c' => self.parse_global(),
            _ => return None,
        };
        Some(value.map(|value| self.push(value)))
    }

    /// Executes an operation that [`execute_scalar`](Self::execute_scalar) does not execute.
    /// Returns `None` if the operation fails or is unsupported.
    fn execute_collection(&mut self, operation: u8) -> Option<()> {
        match operation {
            // The operations PROTO and FRAME.
            0x80 => self.next_bytes(1).map(|_| ()),
            0x95 => self.next_bytes(8).map(|_| ()),
            b'(' => {
                self.marks.push(self.stack.len());
                Some(())
            }
            b'0' => self.pop().map(|_| ()),
            b'1' => self.pop_to_mark().map(|_| ()),
            b']' | b')' => {
                self.push(PickleValue::List(Vec::new()));
                Some(())
            }
            b'}' => {
                self.push(PickleValue::Dictionary(Vec::new()));
                Some(())
            }
            b'l' | b't' => self
                .pop_to_mark()
                .map(|items| self.push(PickleValue::List(items))),
            0x85..=0x87 => self.push_tuple(usize::from(operation - 0x84)),
            b'd' => self
                .pop_to_mark()
                .and_then(|items| pairs(&items))
                .map(|pairs| self.push(PickleValue::Dictionary(pairs))),
            b'a' => self.pop().and_then(|item| self.append_to_list(vec![item])),
            b'e' => self
                .pop_to_mark()
                .and_then(|items| self.append_to_list(items)),
            b's' => self
                .pop_many(2)
                .and_then(|items| self.insert_in_dictionary(&items)),
            b'u' => self
                .pop_to_mark()
                .and_then(|items| self.insert_in_dictionary(&items)),
            b'p' => self
                .next_line()
                .and_then(parse_decimal)
                .and_then(|at| self.memoize(at)),
            b'q' => self.next_unsigned(1).and_then(|at| self.memoize_at(at)),
            b'r' => self.next_unsigned(4).and_then(|at| self.memoize_at(at)),
            0x94 => self.memoize_at(self.memo.len() as u64),
            b'g' => self
                .next_line()
                .and_then(parse_decimal)
                .and_then(|at| self.push_memo(at)),
            b'h' => self.next_unsigned(1).and_then(|at| self.push_memo_at(at)),
            b'j' => self.next_unsigned(4).and_then(|at| self.push_memo_at(at)),
            0x93 => self.push_global(),
            b'R' | 0x81 => self.pop_many(2).and_then(|parts| self.push_object(&parts)),
            b'b' => self.pop().and_then(|state| self.set_state(state)),
            _ => None,
        }
    }

    fn push(&mut self, value: PickleValue) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    fn pop(&mut self) -> Option<ValueIndex> {
        let floor = self.marks.last().copied().unwrap_or(0);
        (self.stack.len() > floor)
            .then(|| self.stack.pop())
            .flatten()
    }

    /// Pops the topmost `count` values from the stack.
    fn pop_many(&mut self, count: usize) -> Option<Vec<ValueIndex>> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let start = self.stack.len().checked_sub(count)?;
        (start >= floor).then(|| self.stack.split_off(start))
    }

    fn pop_to_mark(&mut self) -> Option<Vec<ValueIndex>> {
        let mark = self.marks.pop()?;
        let items = (mark <= self.stack.len()).then(|| self.stack.split_off(mark))?;
        self.item_count += items.len();
        Some(items)
    }

    fn push_tuple(&mut self, count: usize) -> Option<()> {
        let items = self.pop_many(count)?;
        self.push(PickleValue::List(items));
        Some(())
    }

    fn append_to_list(&mut self, items: Vec<ValueIndex>) -> Option<()> {
        let list = *self.stack.last()?;
        match self.values.get_mut(list)? {
            PickleValue::List(list) => {
                self.item_count += items.len();
                list.extend(items);
            }
            _ => return None,
        }
        Some(())
    }

    fn insert_in_dictionary(&mut self, items: &[ValueIndex]) -> Option<()> {
        let dictionary = *self.stack.last()?;
        match self.values.get_mut(dictionary)? {
            PickleValue::Dictionary(dictionary) => {
                self.item_count += items.len();
                dictionary.extend(pairs(items)?);
            }
            _ => return None,
        }
        Some(())
    }

    fn memoize(&mut self, at: i64) -> Option<()> {
        self.memoize_at(u64::try_from(at).ok()?)
    }

    fn memoize_at(&mut self, at: u64) -> Option<()> {
        let value = *self.stack.last()?;
        self.memo.insert(at, value);
        Some(())
    }

    fn push_memo(&mut self, at: i64) -> Option<()> {
        self.push_memo_at(u64::try_from(at).ok()?)
    }

    fn push_memo_at(&mut self, at: u64) -> Option<()> {
        let value = *self.memo.get(&at)?;
        self.stack.push(value);
        Some(())
    }

    fn parse_global(&mut self) -> Option<PickleValue> {
        let first = self.values.len();
        for _ in 0..2 {
            let line = self.next_line()?.to_vec();
            self.values.push(text(line));
        }
        Some(PickleValue::Global(first, first + 1))
    }

    fn push_global(&mut self) -> Option<()> {
        let names = self.pop_many(2)?;
        let &[module, name] = &names[..] else {
            return None;
        };
        self.push(PickleValue::Global(module, name));
        Some(())
    }

    fn push_object(&mut self, parts: &[ValueIndex]) -> Option<()> {
        let &[callable, arguments] = parts else {
            return None;
        };
        self.push(PickleValue::Object {
            callable,
            arguments,
            state: None,
        });
        Some(())
    }

    fn set_state(&mut self, given: ValueIndex) -> Option<()> {
        let object = *self.stack.last()?;
        match self.values.get_mut(object)? {
            PickleValue::Object { state, .. } => *state = Some(given),
            _ => return None,
        }
        Some(())
    }

    fn next_bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn next_byte(&mut self) -> Option<u8> {
        self.next_bytes(1)?.first().copied()
    }

    fn next_line(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|&byte| byte == b'\n')?;
        let line = self.next_bytes(end)?;
        self.next_bytes(1)?;
        Some(line)
    }

    /// Consumes a little-endian number of `bytes` bytes.
    fn next_unsigned(&mut self, bytes: usize) -> Option<u64> {
        let taken = self.next_bytes(bytes)?.iter().rev();
        Some(taken.fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }

    /// Consumes a signed little-endian integer, which is preceded by its length in bytes.
    fn next_signed(&mut self) -> Option<i64> {
        let count = self.next_unsigned(1)?;
        let bytes = self.next_bytes(to_usize(count).ok()?)?;
        let sign = match bytes.last() {
            Some(&last) if last >= 0x80 => 0xFF,
            _ => 0,
        };
        let mut wide = [sign; 8];
        wide.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(i64::from_le_bytes(wide))
    }

    /// Consumes a byte string, which is preceded by its length. The length itself has `bytes`
    /// bytes.
    fn next_counted_bytes(&mut self, bytes: usize) -> Option<Vec<u8>> {
        let count = self.next_unsigned(bytes)?;
        let text = self.next_bytes(to_usize(count).ok()?)?;
        Some(text.to_vec())
    }
}

fn text(bytes: Vec<u8>) -> PickleValue {
    PickleValue::Text(bytes.into())
}

fn integer(number: u64) -> PickleValue {
    PickleValue::Integer(number.cast_signed())
}

fn parse_decimal(line: &[u8]) -> Option<i64> {
    str::from_utf8(line).ok()?.parse().ok()
}

fn pairs(items: &[ValueIndex]) -> Option<Vec<(ValueIndex, ValueIndex)>> {
    let (pairs, rest) = items.as_chunks();
    let pairs = pairs.iter().map(|&[key, value]| (key, value));
    rest.is_empty().then(|| pairs.collect())
}

/// Parses a text in Python's quotes; `None` if the text contains an escape, or if the quotes are
/// not closed.
fn parse_quoted_text(line: &[u8]) -> Option<Vec<u8>> {
    let (&quote, rest) = line.split_first()?;
    let (&end, inner) = rest.split_last()?;
    let is_plain = matches!(quote, b'\'' | b'"') && quote == end && !inner.contains(&b'\\');
    is_plain.then(|| inner.to_vec())
}

/// Parses a Latin-1 text with the escapes `\uXXXX` and `\UXXXXXXXX`.
fn parse_raw_unicode(line: &[u8]) -> Option<Vec<u8>> {
    let mut text = String::new();
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        let digits = match (byte, after.first()) {
            (b'\\', Some(b'u')) => 4,
            (b'\\', Some(b'U')) => 8,
            _ => {
                text.push(char::from(byte));
                rest = after;
                continue;
            }
        };
        let (code, behind) = after.get(1..)?.split_at_checked(digits)?;
        let code = u32::from_str_radix(str::from_utf8(code).ok()?, 16).ok()?;
        text.push(char::from_u32(code)?);
        rest = behind;
    }
    Some(text.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(pickle: &[u8]) -> Option<Vec<String>> {
        let pickle = Pickle::read(pickle)?;
        let items = pickle.items(pickle.root_value())?.iter();
        let text = |&item| String::from_utf8(pickle.text(item)?.to_vec()).ok();
        items.map(text).collect()
    }

    /// The pickles were written with Python's `pickle.dumps(…, protocol)`.
    #[test]
    fn lists_of_names_of_all_protocols() {
        let expected = Some(vec!["f".to_owned(), "é\n".to_owned(), "-3".to_owned()]);
        let oldest = b"(lp0\nVf\np1\naV\xe9\\u000a\np2\naI-3\na.";
        assert_eq!(texts(oldest), expected);
        let second = b"\x80\x02]q\x00(X\x01\x00\x00\x00fq\x01\
            X\x03\x00\x00\x00\xc3\xa9\nq\x02J\xfd\xff\xff\xffe.";
        assert_eq!(texts(second), expected);
        let fifth = b"\x80\x05\x95\x14\x00\x00\x00\x00\x00\x00\x00]\x94(\x8c\x01f\x94\
            \x8c\x03\xc3\xa9\n\x94J\xfd\xff\xff\xffe.";
        assert_eq!(texts(fifth), expected);
        let of_python_2 = b"(lp1\nS'A'\np2\naS'B'\np3\nag2\na.";
        let expected = ["A", "B", "A"].map(str::to_owned).to_vec();
        assert_eq!(texts(of_python_2), Some(expected));
    }

    #[test]
    fn dictionaries_of_dictionaries() {
        let pickle = Pickle::read(b"(dp0\nVindex\np1\n(dp2\nVtz\np3\nNsVname\np4\nVwhen\np5\nss.");
        let pickle = pickle.unwrap();
        let index = pickle.value(pickle.root_value(), b"index").unwrap();
        let name = pickle.value(index, b"name").unwrap();
        assert_eq!(&*pickle.text(name).unwrap(), b"when");
        let zone = pickle.value(index, b"tz").unwrap();
        assert_eq!(pickle.get(zone), Some(&PickleValue::None));
        assert!(pickle.value(index, b"none").is_none());
    }

    /// Each `N` creates a value, and pushes it onto the stack.
    #[test]
    fn the_number_of_pickle_values_is_limited() {
        let nothing = |count: usize| Pickle::read(&[vec![b'N'; count], vec![b'.']].concat());
        assert!(nothing(limits::PICKLE_VALUES / 2).is_some());
        assert!(nothing(limits::PICKLE_VALUES / 2 + 1).is_none());
        let marks = |count: usize| Pickle::read(&[vec![b'('; count], b"lN.".to_vec()].concat());
        assert!(marks(limits::PICKLE_VALUES - 3).is_some());
        assert!(marks(limits::PICKLE_VALUES + 1).is_none());
    }

    /// Each `h\x00a` appends the same value to the list again.
    #[test]
    fn the_number_of_pickle_items_is_limited() {
        let list = |count| [b"\x80\x02]Nq\x00a", &b"h\x00a".repeat(count)[..], b"."].concat();
        let read = |count| Pickle::read(&list(count));
        assert!(read(limits::PICKLE_PLACES - 1).is_some());
        assert!(read(limits::PICKLE_PLACES).is_none());
    }

    /// `cos\nsystem\n(S'true'\ntR.` would run a command in Python.
    #[test]
    fn functions_in_pickles_are_not_called() {
        let pickle = Pickle::read(b"cos\nsystem\n(S'true'\ntR.").unwrap();
        let Some(PickleValue::Object { callable, .. }) = pickle.get(pickle.root_value()) else {
            panic!("no object");
        };
        assert!(pickle.is_global(*callable, b"os", b"system"));
    }

    #[test]
    fn damaged_pickles_are_rejected() {
        let hostile: &[&[u8]] = &[
            b"",
            b".",
            b"(",
            b"(l",
            b"a.",
            b"]a.",
            b"(t",
            b"g7\n.",
            b"\x80\x02]q\x00h\x00a",
            b"Vx\nb.",
            b"X\xff\xff\xff\xffx.",
            b"S'\n.",
            b"S'a\\x41'\n.",
            b"(Va\nd.",
            b"\x8a\x20.",
            b"I1",
            b"I1e9\n.",
            b"\x93.",
            b"N(\x86.",
        ];
        for pickle in hostile {
            assert!(Pickle::read(pickle).is_none(), "{pickle:?}");
        }
        // A list that contains itself is a valid value.
        let circle = Pickle::read(b"]q\x00h\x00a.").unwrap();
        assert_eq!(circle.items(circle.root_value()), Some(&[0][..]));
        assert_eq!(circle.text(circle.root_value()), None);
    }
}
