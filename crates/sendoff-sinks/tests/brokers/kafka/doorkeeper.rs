//! A broker that lets nobody in: the mock cluster takes no passwords, so this much of the protocol is by hand.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

const SASL_HANDSHAKE: i16 = 17;
const API_VERSIONS: i16 = 18;
const SASL_AUTHENTICATE: i16 = 36;

/// What it understands, with the first and the last version of it.
const UNDERSTOOD: [(i16, i16, i16); 6] = [
    (0, 3, 7),
    (3, 0, 4),
    (SASL_HANDSHAKE, 0, 1),
    (API_VERSIONS, 0, 3),
    (22, 0, 1),
    (SASL_AUTHENTICATE, 0, 1),
];

const SASL_AUTHENTICATION_FAILED: i16 = 58;

/// It listens here for as long as the test runs.
pub(crate) fn open() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let mut request = vec![0; usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?];
        stream.read_exact(&mut request)?;
        let number = |at: usize| i16::from_be_bytes([request[at], request[at + 1]]);
        let body = match number(0) {
            API_VERSIONS => versions(number(2)),
            SASL_HANDSHAKE => mechanisms(),
            SASL_AUTHENTICATE => refusal(number(2)),
            other => return Err(io::Error::other(format!("{other} from somebody who was not let in"))),
        };
        let mut answer = u32::try_from(body.len() + 4).map_err(io::Error::other)?.to_be_bytes().to_vec();
        answer.extend(&request[4..8]);
        answer.extend(body);
        stream.write_all(&answer)?;
    }
}

fn versions(version: i16) -> Vec<u8> {
    let is_compact = version >= 3;
    let mut body = vec![0, 0];
    let count = u8::try_from(UNDERSTOOD.len()).unwrap();
    if is_compact {
        body.push(count + 1);
    } else {
        body.extend([0, 0, 0, count]);
    }
    for (key, first, last) in UNDERSTOOD {
        body.extend([key, first, last].into_iter().flat_map(i16::to_be_bytes));
        body.extend(is_compact.then_some(0));
    }
    if version >= 1 {
        body.extend([0; 4]);
    }
    body.extend(is_compact.then_some(0));
    body
}

fn mechanisms() -> Vec<u8> {
    let mut body = vec![0, 0, 0, 0, 0, 3];
    for name in ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] {
        body.extend(text(name));
    }
    body
}

fn refusal(version: i16) -> Vec<u8> {
    let mut body = SASL_AUTHENTICATION_FAILED.to_be_bytes().to_vec();
    body.extend(text("Authentication failed: Invalid username or password"));
    body.extend([0; 4]);
    if version >= 1 {
        body.extend([0; 8]);
    }
    body
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = u16::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes
}
