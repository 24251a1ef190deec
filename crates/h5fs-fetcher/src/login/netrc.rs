//! The names and passwords of `~/.netrc`, in the format of ftp(1) and curl(1).
//!
//! An entry is `machine HOST login NAME password WORD`, as words separated by white space.
//! `default` matches every other host. A quoted word may contain spaces, `\"`, `\\`, `\n`, `\r` and
//! `\t`.

use http::HeaderValue;

use crate::address::basic_authorization;

/// The entries of a netrc file, in their order.
#[derive(Default)]
pub(super) struct Netrc(Vec<NetrcEntry>);

#[derive(Default, Debug, PartialEq, Eq)]
struct NetrcEntry {
    /// The host of the entry. `None` for the entry `default`.
    host: Option<String>,
    login: String,
    password: String,
}

impl Netrc {
    /// Parses the text of a netrc file.
    ///
    /// # Errors
    /// Returns why the text is invalid.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut entries: Vec<NetrcEntry> = Vec::new();
        let mut words = NetrcTokens(text);
        while let Some(word) = words.next() {
            let mut value = || {
                words
                    .next()
                    .ok_or_else(|| "the file ends within an entry".to_owned())
            };
            match (word.as_str(), entries.last_mut()) {
                ("machine", _) => entries.push(NetrcEntry {
                    host: Some(value()?),
                    ..NetrcEntry::default()
                }),
                ("default", _) => entries.push(NetrcEntry::default()),
                ("login", Some(entry)) => entry.login = value()?,
                ("password", Some(entry)) => entry.password = value()?,
                ("account", Some(_)) => drop(value()?),
                ("macdef", _) => words.skip_macro(),
                // The word may be a secret, so the error does not contain it.
                _ => {
                    return Err(
                        "not a netrc file: its words are `machine`, `login` and `password`"
                            .to_owned(),
                    );
                }
            }
        }
        if entries.is_empty() {
            return Err("the file contains no `machine`".to_owned());
        }
        Ok(Netrc(entries))
    }

    /// Returns the `Authorization` header for a host, or `None` if no entry matches. The entry
    /// `default` matches only if `is_own` is set, for the host of the source's URL.
    pub(super) fn authorization(&self, host: &str, is_own: bool) -> Option<HeaderValue> {
        let is_of = |entry: &&NetrcEntry| match &entry.host {
            Some(named) => named.eq_ignore_ascii_case(host),
            None => is_own,
        };
        let entry = self.0.iter().find(is_of)?;
        basic_authorization(format!("{}:{}", entry.login, entry.password))
    }
}

/// A tokenizer of a netrc file. It holds the text after the current word.
struct NetrcTokens<'a>(&'a str);

impl NetrcTokens<'_> {
    /// Skips a macro, which ends with an empty line.
    fn skip_macro(&mut self) {
        self.0 = self.0.split_once("\n\n").map_or("", |(_, rest)| rest);
    }
}

impl Iterator for NetrcTokens<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            self.0 = self.0.trim_start();
            match self.0.chars().next()? {
                '#' => self.0 = self.0.split_once('\n').map_or("", |(_, rest)| rest),
                '"' => return self.next_quoted(),
                _ => break,
            }
        }
        let end = self.0.find(char::is_whitespace).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(end);
        self.0 = rest;
        Some(word.to_owned())
    }
}

impl NetrcTokens<'_> {
    /// Returns the next quoted word, or `None` if the quote is not closed.
    fn next_quoted(&mut self) -> Option<String> {
        let (mut word, mut characters) = (String::new(), self.0.chars());
        characters.next();
        loop {
            match characters.next()? {
                '"' => break,
                '\\' => word.push(match characters.next()? {
                    'n' => '\n',
                    'r' => '\r',
                    't' => '\t',
                    other => other,
                }),
                other => word.push(other),
            }
        }
        self.0 = characters.as_str();
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorization(netrc: &Netrc, host: &str, is_own: bool) -> Option<String> {
        let value = netrc.authorization(host, is_own)?;
        assert!(value.is_sensitive());
        Some(value.to_str().unwrap().to_owned())
    }

    /// The encoded words are the output of `printf 'joe:sesame' | base64`.
    #[test]
    fn a_host_has_the_login_of_its_entry() {
        let text = "# NASA\nmachine urs.earthdata.nasa.gov login joe\n\tpassword sesame\n\
                    macdef init\ncd /a\nmachine b login c\n\n\
                    machine B.org\nlogin \"a b\" account x password \"q\\\"\\\\\"\ndefault login anonymous password me\n";
        let netrc = Netrc::parse(text).unwrap();
        let of_nasa = authorization(&netrc, "URS.earthdata.nasa.gov", false);
        assert_eq!(of_nasa.as_deref(), Some("Basic am9lOnNlc2FtZQ=="));
        let quoted = authorization(&netrc, "b.org", false);
        assert_eq!(quoted.as_deref(), Some("Basic YSBiOnEiXA=="));
        assert_eq!(authorization(&netrc, "b", false), None);
        let usual = authorization(&netrc, "b", true);
        assert_eq!(usual.as_deref(), Some("Basic YW5vbnltb3VzOm1l"));
    }

    #[test]
    fn an_invalid_netrc_is_rejected_without_quoting_it() {
        for wrong in [
            "",
            "# nothing",
            "sesame",
            "login sesame",
            "machine",
            "machine a login",
            "machine a login \"sesame",
        ] {
            let refused = Netrc::parse(wrong).map(|_| ()).unwrap_err();
            assert!(!refused.contains("sesame"), "{wrong}: {refused}");
        }
    }
}
