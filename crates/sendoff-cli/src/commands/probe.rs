//! `sendoff probe`: asks a running process whether it is alive or ready.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::admin::address::from_here;
use crate::args::ProbeArgs;
use crate::config::Config;
use crate::exit::{Answer, refuse};
use crate::output::{print, visible};

/// A process that takes longer does not answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// No answer is longer.
const ANSWER_MAX: u64 = 64 * 1_024;

/// Asks, and shows what is answered.
pub(crate) async fn run(args: &ProbeArgs) -> Result<Answer> {
    let configured = || {
        let config = args.config.as_deref().map(Config::read).transpose()?;
        Ok::<_, anyhow::Error>(config.and_then(|config| config.admin.listen))
    };
    let listen = match args.admin {
        Some(listen) => Some(listen),
        None => configured()?,
    };
    let Some(listen) = listen else {
        refuse!("where is it? Give --admin ADDRESS, or --config FILE with [admin] listen");
    };
    let address = from_here(listen);
    let asked = tokio::time::timeout(PATIENCE, ask(address, &args.what)).await;
    let (status, body) = asked
        .with_context(|| format!("{address} does not answer within {PATIENCE:?}"))?
        .with_context(|| format!("{address}: is `sendoff run` there, with --admin?"))?;
    print(&format!("{}\n", visible(body.trim_end())))?;
    Ok(if status == 200 { Answer::Yes } else { Answer::No })
}

async fn ask(address: SocketAddr, what: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await?;
    let request = format!("GET /{what} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ANSWER_MAX).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)?.parse().ok());
    match (status, answer.split_once("\r\n\r\n")) {
        (Some(status), Some((_, body))) => Ok((status, body.to_owned())),
        _ => bail!("that is no answer of a sendoff"),
    }
}
