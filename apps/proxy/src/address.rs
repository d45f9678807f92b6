//! Where a source is: `rtsp://user:password@host:port/path?query`, or `rtsps://`, as cameras' manuals write it.
//!
//! Addresses of cameras often break the rules for URLs, so what follows the host is taken as it is. Credentials are
//! kept apart from the rest: an address is shown, compared and sent without them.

use std::fmt;
use std::net::Ipv4Addr;

/// The port of RTSP (RFC 2326, section 3.2).
pub const RTSP_PORT: u16 = 554;

/// The port of RTSP within TLS (RFC 7826, section 20.2).
pub const RTSPS_PORT: u16 = 322;

/// Who asks.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The name.
    pub user: String,
    /// What is never shown.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

/// The address of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Within TLS.
    pub is_secure: bool,
    /// A name, or an IP address; without brackets.
    pub host: String,
    /// 554 unless told, 322 within TLS.
    pub port: u16,
    /// From the first slash on, empty where there is none.
    pub path: String,
    /// What is asked with, if anything.
    pub credentials: Option<Credentials>,
}

/// Octets that are written `%41`, decoded; others as they are.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'%').then(|| after.get(..2)).flatten();
        let code =
            code.and_then(|digits| std::str::from_utf8(digits).ok()).and_then(|d| u8::from_str_radix(d, 16).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8(bytes).ok()
}

impl Address {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it and what to write instead; the text has no credentials in it.
    pub fn parse(text: &str) -> Result<Address, String> {
        let form = "write rtsp://USER:PASSWORD@HOST:PORT/PATH";
        let (scheme, rest) = text.split_once("://").unwrap_or(("", text));
        let is_secure = scheme.eq_ignore_ascii_case("rtsps");
        if !is_secure && !scheme.eq_ignore_ascii_case("rtsp") {
            return Err(format!("it begins with neither rtsp:// nor rtsps://; {form}"));
        }
        if rest.bytes().any(|b| b.is_ascii_control() || b == b' ') {
            return Err(format!("it has spaces or control characters in it; {form}"));
        }
        let (authority, path) = rest.find(['/', '?']).map_or((rest, ""), |at| rest.split_at(at));
        // Passwords may have an @ in them, and a slash that is not written %2F.
        let (authority, path) = match (authority.contains('@'), rest.rfind('@')) {
            (false, Some(at)) if authority.contains(':') && !is_port(authority) => {
                let end = rest[at..].find(['/', '?']).map_or(rest.len(), |n| at + n);
                rest.split_at(end)
            }
            _ => (authority, path),
        };
        // Either the password goes on behind the slash, or the path has an @ in it, as where some cameras have their password; nobody is called
        // like a number of a host.
        let is_number = authority.split(':').next().is_some_and(|host| host.parse::<Ipv4Addr>().is_ok());
        let is_host = is_number || authority.starts_with('[') || !authority.contains(':');
        if !authority.contains('@') && path.contains('@') && !is_host {
            return Err(
                "it can be read in two ways: write / in a password as %2F, ? as %3F, and @ behind the host as %40"
                    .to_owned(),
            );
        }
        let (credentials, host) = match authority.rsplit_once('@') {
            None => (None, authority),
            Some((who, host)) => {
                let (user, password) = who.split_once(':').unwrap_or((who, ""));
                let decoded = unescaped(user).zip(unescaped(password));
                let (user, password) =
                    decoded.ok_or("its user or password is no UTF-8 text; escape other bytes as %XX")?;
                (Some(Credentials { user, password }), host)
            }
        };
        if host.starts_with('[') && !host.contains(']') {
            return Err(format!("the [ before its host has no ] behind it; {form}"));
        }
        let (host, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => host.split_once(':').map_or((host, None), |(host, port)| (host, Some(port))),
        };
        let port = match port {
            None | Some("") if is_secure => RTSPS_PORT,
            None | Some("") => RTSP_PORT,
            Some(port) => port.parse().ok().filter(|port| *port > 0).ok_or("its port is no number from 1 to 65535")?,
        };
        if host.is_empty() {
            return Err(format!("it names no host; {form}"));
        }
        Ok(Address { is_secure, host: host.to_owned(), port, path: path.to_owned(), credentials })
    }

    /// The address as requests name it: without the credentials before the host, with all that follows it.
    pub fn url(&self) -> String {
        format!("{}{}", self.place(), self.path)
    }

    /// Scheme, host and port.
    fn place(&self) -> String {
        let (scheme, usual) = if self.is_secure { ("rtsps", RTSPS_PORT) } else { ("rtsp", RTSP_PORT) };
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == usual { format!("{scheme}://{host}") } else { format!("{scheme}://{host}:{}", self.port) }
    }

    /// What another path on the same host is called.
    pub fn with_path(&self, path: &str) -> String {
        Address { path: path.to_owned(), credentials: None, ..self.clone() }.url()
    }
}

fn is_port(authority: &str) -> bool {
    authority.rsplit_once(':').is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

/// The address as people are shown it: the place alone. Many cameras take name and password within the path, each in its own way.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_credentials() {
        let cases = [
            ("rtsp://cam/a", "rtsp://cam", "cam", 554, None),
            ("rtsps://u:p@cam/a", "rtsps://cam", "cam", 322, Some(("u", "p"))),
            ("rtsps://cam:554", "rtsps://cam:554", "cam", 554, None),
            ("RTSP://cam:8554", "rtsp://cam:8554", "cam", 8554, None),
            ("rtsp://u:p@10.0.0.1/x?y=1&z={2}", "rtsp://10.0.0.1", "10.0.0.1", 554, Some(("u", "p"))),
            ("rtsp://cam/user=a&password=b/c", "rtsp://cam", "cam", 554, None),
            ("rtsp://cam/user%3Da%26password%3Db", "rtsp://cam", "cam", 554, None),
            ("rtsp://cam/user_a_password_b_ch1", "rtsp://cam", "cam", 554, None),
            ("rtsp://u:p%40%3a@cam/", "rtsp://cam", "cam", 554, Some(("u", "p@:"))),
            ("rtsp://u:a@b@cam:99/", "rtsp://cam:99", "cam", 99, Some(("u", "a@b"))),
            ("rtsp://u:a/b@cam:99/c", "rtsp://cam:99", "cam", 99, Some(("u", "a/b"))),
            ("rtsp://[::1]:5/q", "rtsp://[::1]:5", "::1", 5, None),
            ("rtsp://u@cam?channel=1", "rtsp://cam", "cam", 554, Some(("u", ""))),
            ("rtsp://10.6.1.2:554/user=u&password=p@w", "rtsp://10.6.1.2", "10.6.1.2", 554, None),
            ("rtsp://cam/mail@home", "rtsp://cam", "cam", 554, None),
        ];
        for (text, shown, host, port, who) in cases {
            let address = Address::parse(text).unwrap();
            assert_eq!(
                (address.to_string().as_str(), address.host.as_str(), address.port),
                (shown, host, port),
                "{text}"
            );
            let found = address.credentials.as_ref().map(|c| (c.user.as_str(), c.password.as_str()));
            assert_eq!(found, who, "{text}");
            let path =
                text.rsplit_once("cam").filter(|_| host == "cam").map(|(_, rest)| rest.trim_start_matches(":554"));
            assert!(path.is_none_or(|path| address.url().ends_with(path)), "{text}: a request names all of the path");
            assert!(!format!("{address:?}").contains("a@b"), "{address:?}");
        }
        for wrong in [
            "",
            "http://cam/",
            "rtsp://",
            "rtsp://u:secret@/x",
            "rtsp://cam:0/",
            "rtsp://admin:8241/secret@host/live",
            "rtsp://admin:8241?secret@host/live",
            "rtsp://u:secret@cam:x/",
            "rtsp://a b/",
        ] {
            let said = Address::parse(wrong).unwrap_err();
            assert!(!said.contains("secret"), "{said}");
        }
    }
}
