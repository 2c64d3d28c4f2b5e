//! The admin listener: figures for Prometheus, and answers for who watches over the process. Off unless it is asked for.

pub(crate) mod address;
mod answer;
mod request;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub(crate) use self::address::Address;
pub(crate) use self::answer::Answers;
use self::request::{HEAD_MAX, Request};
pub(crate) use self::watch::Watch;

/// So many are spoken with at a time; others wait to be let in.
const CONNECTIONS_MAX: usize = 32;

/// Who has not asked and been answered by then is sent away.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is left of a request is read for so long, so that the answer arrives before the end does.
const LINGER: Duration = Duration::from_millis(200);

/// Answers until it is dropped, and whoever is being answered with it.
pub(crate) async fn serve(listener: TcpListener, answers: Arc<Answers>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let mut connections = JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let answers = Arc::clone(&answers);
                connections.spawn(async move {
                    // Who is too slow, or goes away, is nobody's trouble but their own.
                    let _ = tokio::time::timeout(PATIENCE, converse(stream, &answers)).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the admin listener could not let somebody in");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        while connections.try_join_next().is_some() {}
    }
}

/// One request, one answer.
async fn converse(mut stream: TcpStream, answers: &Answers) -> std::io::Result<()> {
    let mut head = Vec::with_capacity(1_024);
    let request = loop {
        match Request::read(&head) {
            Some(request) => break request,
            None if head.len() >= HEAD_MAX => break Err(431),
            None => {
                let mut part = [0; 1_024];
                let count = stream.read(&mut part).await?;
                if count == 0 {
                    return Ok(());
                }
                head.extend_from_slice(&part[..count]);
            }
        }
    };
    stream.write_all(&answers.answer(request)).await?;
    stream.shutdown().await?;
    let rest = async {
        let mut part = [0; 4_096];
        while stream.read(&mut part).await.is_ok_and(|count| count > 0) {}
    };
    let _ = tokio::time::timeout(LINGER, rest).await;
    Ok(())
}
