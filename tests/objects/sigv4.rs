//! Verifies signatures of version 4, as described in "Authenticating Requests (AWS Signature
//! Version 4)" in the documentation of Amazon S3. Includes SHA-256 (FIPS 180-4) and HMAC (RFC
//! 2104).

use super::server::Seen;

/// Credentials of a client that may read.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    pub(crate) id: String,
    pub(crate) secret: String,
    /// Session token of temporary credentials, or empty for none.
    pub(crate) token: String,
    pub(crate) region: String,
}

/// Checks that a request is signed with these credentials.
pub(crate) fn verify(seen: &Seen, keys: &Keys) -> Result<(), &'static str> {
    let authorization = seen.header("authorization").ok_or("AccessDenied")?;
    let fields = authorization
        .strip_prefix("AWS4-HMAC-SHA256 ")
        .ok_or("AccessDenied")?;
    let field = |name: &str| {
        let mut pairs = fields
            .split(',')
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(own, _)| *own == name).map(|(_, value)| value)
    };
    let credential = field("Credential").ok_or("AccessDenied")?;
    let signed = field("SignedHeaders").ok_or("AccessDenied")?;
    let date = seen.header("x-amz-date").ok_or("AccessDenied")?;
    let day = date.get(..8).ok_or("AccessDenied")?;
    let scope = format!("{day}/{}/s3/aws4_request", keys.region);
    if credential != format!("{}/{scope}", keys.id) {
        return Err("InvalidAccessKeyId");
    }
    if seen.header("x-amz-security-token").unwrap_or_default() != keys.token {
        return Err("InvalidToken");
    }
    if !signed.split(';').any(|name| name == "host") {
        return Err("AccessDenied");
    }
    let (path, query) = seen.path.split_once('?').unwrap_or((&seen.path, ""));
    let mut query: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    query.sort_unstable();
    let headers: String = signed
        .split(';')
        .map(|name| format!("{name}:{}\n", seen.header(name).unwrap_or_default()))
        .collect();
    let content = seen.header("x-amz-content-sha256").ok_or("AccessDenied")?;
    let canonical = format!(
        "{}\n{path}\n{}\n{headers}\n{signed}\n{content}",
        seen.method,
        query.join("&")
    );
    let text = format!(
        "AWS4-HMAC-SHA256\n{date}\n{scope}\n{}",
        hex(&sha256(canonical.as_bytes()))
    );
    let mut key = format!("AWS4{}", keys.secret).into_bytes();
    for part in [day, &keys.region, "s3", "aws4_request"] {
        key = hmac(&key, part.as_bytes()).to_vec();
    }
    match field("Signature") {
        Some(signature) if signature == hex(&hmac(&key, text.as_bytes())) => Ok(()),
        _ => Err("SignatureDoesNotMatch"),
    }
}

/// Percent-encodes all bytes except unreserved characters and `/`.
pub(crate) fn encoded(text: &str) -> String {
    let one = |byte: u8| {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    text.bytes().map(one).collect()
}

/// Decodes a percent-encoded text.
pub(crate) fn decoded(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let digits: String = bytes.by_ref().take(2).map(char::from).collect();
        out.push(u8::from_str_radix(&digits, 16).expect("two digits"));
    }
    out
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hmac(key: &[u8], text: &[u8]) -> [u8; 32] {
    let mut block = [0_u8; 64];
    if key.len() > 64 {
        block[..32].copy_from_slice(&sha256(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let padded = |pad: u8| block.map(|byte| byte ^ pad).to_vec();
    let inner = sha256(&[padded(0x36), text.to_vec()].concat());
    sha256(&[padded(0x5c), inner.to_vec()].concat())
}

/// Returns the first 32 bits of the fractional part of the root of a prime: FIPS 180-4, section
/// 4.2.2.
fn fraction(root: f64) -> u32 {
    (root.fract() * 4_294_967_296.0) as u32
}

fn primes() -> impl Iterator<Item = f64> {
    let is_prime = |n: &u32| (2..*n).all(|divisor| !n.is_multiple_of(divisor));
    (2_u32..).filter(is_prime).map(f64::from)
}

pub(crate) fn sha256(text: &[u8]) -> [u8; 32] {
    let constants: Vec<u32> = primes()
        .take(64)
        .map(|prime| fraction(prime.cbrt()))
        .collect();
    let mut state: Vec<u32> = primes()
        .take(8)
        .map(|prime| fraction(prime.sqrt()))
        .collect();
    let mut padded = text.to_vec();
    padded.push(0x80);
    padded.resize(padded.len().next_multiple_of(64), 0);
    if padded.len() - text.len() < 9 {
        padded.resize(padded.len() + 64, 0);
    }
    let at = padded.len() - 8;
    padded[at..].copy_from_slice(&(text.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks_exact(64) {
        let mut words: Vec<u32> = block
            .chunks_exact(4)
            .map(|word| u32::from_be_bytes(word.try_into().expect("4 bytes")))
            .collect();
        for t in 16..64 {
            let (a, b) = (words[t - 15], words[t - 2]);
            let first = a.rotate_right(7) ^ a.rotate_right(18) ^ (a >> 3);
            let second = b.rotate_right(17) ^ b.rotate_right(19) ^ (b >> 10);
            let sum = words[t - 16].wrapping_add(first).wrapping_add(words[t - 7]);
            words.push(sum.wrapping_add(second));
        }
        let mut v = state.clone();
        for t in 0..64 {
            let e = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let choice = (v[4] & v[5]) ^ (!v[4] & v[6]);
            let first = v[7].wrapping_add(e).wrapping_add(choice);
            let first = first.wrapping_add(constants[t]).wrapping_add(words[t]);
            let a = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
            let second = a.wrapping_add(majority);
            v.rotate_right(1);
            v[4] = v[4].wrapping_add(first);
            v[0] = first.wrapping_add(second);
        }
        for (own, new) in state.iter_mut().zip(v) {
            *own = own.wrapping_add(new);
        }
    }
    let bytes: Vec<u8> = state.iter().flat_map(|word| word.to_be_bytes()).collect();
    bytes.try_into().expect("32 bytes")
}
