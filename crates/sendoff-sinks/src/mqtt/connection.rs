//! One connection, and who waits for what on it.
//!
//! It is thrown away with everything that is on its way when it is lost, and nothing is ever sent on another one by itself: what was reported as not delivered
//! would come after what was sent since. The next one has the same client id, so a server closes this one before it lets that one in, and reads no more of it.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};

use super::message::Message;
use super::packet::{self, Incoming, Limits, Verdict};
use super::server::Login;
use super::stream::{Stream, unreachable};
use super::{MqttConfig, MqttQos, PING_TIMEOUT};
use crate::unusable::Unusable;

/// With a server that does not say how many messages may be on their way: as many as the most widespread one takes.
const IN_FLIGHT: u16 = 20;

/// What is written and not sent yet is kept below this, unless a single message has more.
const BUFFER: usize = 256 * 1024;

/// How long a polite end may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// What became of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Said(Verdict),
    /// The server is there, but did not say what became of it.
    Unsaid(String),
}

type Answering = oneshot::Sender<Answer>;

/// Somebody who waits for an answer.
struct Waiting {
    answering: Answering,
    /// The first of two answers has come.
    received: Option<Verdict>,
}

enum Control {
    Ping(oneshot::Sender<()>),
    GiveUp(String),
    Close(oneshot::Sender<()>),
}

/// A way to a connection, which ends with the last one.
#[derive(Clone)]
pub(super) struct Connection {
    messages: mpsc::UnboundedSender<(Message, Answering)>,
    control: mpsc::UnboundedSender<Control>,
    /// Why it ended.
    ended: Arc<OnceLock<String>>,
    /// The largest packet that the server takes.
    pub(super) max_packet: usize,
}

impl Connection {
    /// Asks to be let in.
    ///
    /// # Errors
    /// Why not, and what to do.
    pub(super) async fn open(
        config: &MqttConfig,
        login: Option<&Login>,
        client_id: &str,
        stream: Box<dyn Stream>,
    ) -> Result<Self, Unusable> {
        let (mut link, limits) = Link::open(config, login, client_id, stream).await?;
        let (messages, incoming_messages) = mpsc::unbounded_channel();
        let (control, incoming_control) = mpsc::unbounded_channel();
        let ended = Arc::new(OnceLock::new());
        let connection = Self {
            messages,
            control,
            ended: Arc::clone(&ended),
            max_packet: limits.packet.map_or(usize::MAX, |max| max as usize),
        };
        tokio::spawn(async move {
            let (messages, control) = (incoming_messages, incoming_control);
            let end = link.run(messages, control, &ended).await;
            link.tell(end);
        });
        Ok(connection)
    }

    pub(super) fn is_lost(&self) -> bool {
        self.messages.is_closed()
    }

    /// Why it is lost.
    pub(super) fn reason(&self) -> String {
        self.ended.get().cloned().unwrap_or_else(|| "the connection is lost".to_owned())
    }

    /// Sends a message after those before it. No answer: the connection was lost.
    pub(super) fn publish(&self, message: Message) -> oneshot::Receiver<Answer> {
        let (answering, answer) = oneshot::channel();
        let _ = self.messages.send((message, answering));
        answer
    }

    /// Whether the server answers.
    pub(super) async fn ping(&self) -> Result<(), String> {
        let (answering, answer) = oneshot::channel();
        let _ = self.control.send(Control::Ping(answering));
        answer.await.map_err(|_| self.reason())
    }

    /// It cannot be trusted any more.
    pub(super) fn give_up(&self, reason: &str) {
        let _ = self.control.send(Control::GiveUp(reason.to_owned()));
    }

    /// Ends it politely.
    pub(super) async fn close(&self) {
        let (answering, answer) = oneshot::channel();
        let _ = self.control.send(Control::Close(answering));
        let _ = timeout(FAREWELL, answer).await;
    }
}

/// Why a connection ended.
enum End {
    Lost(String),
    /// What is on its way may be at fault.
    Blamed(String),
}

impl End {
    fn lost(error: &io::Error) -> Self {
        Self::Lost(format!("the connection is lost: {error}"))
    }

    fn reason(&self) -> &str {
        match self {
            Self::Lost(reason) | Self::Blamed(reason) => reason,
        }
    }
}

/// A ping that is not answered yet.
struct Probe {
    deadline: Instant,
    /// Nothing was acknowledged for a long time when it was sent, nor since.
    is_last_hope: bool,
}

/// The connection itself.
struct Link {
    reader: ReadHalf<Box<dyn Stream>>,
    writer: WriteHalf<Box<dyn Stream>>,
    incoming: BytesMut,
    outgoing: BytesMut,
    /// Nothing is held back by the encryption.
    is_flushed: bool,
    config: MqttConfig,
    /// So many messages may be on their way.
    in_flight: usize,
    keep_alive: Option<Duration>,
    /// Who waits, by the number of the message.
    waiting: HashMap<u16, Waiting>,
    last_id: u16,
    pings: Vec<oneshot::Sender<()>>,
    probe: Option<Probe>,
    last_sent: Instant,
    /// When a message was last acknowledged, or the first of those that are on their way was sent.
    progress: Instant,
}

impl Link {
    async fn open(
        config: &MqttConfig,
        login: Option<&Login>,
        client_id: &str,
        stream: Box<dyn Stream>,
    ) -> Result<(Self, Limits), Unusable> {
        let (mut reader, mut writer) = tokio::io::split(stream);
        let mut outgoing = BytesMut::new();
        packet::write_connect(config, login, client_id, &mut outgoing)?;
        writer.write_all_buf(&mut outgoing).await.map_err(unreachable)?;
        writer.flush().await.map_err(unreachable)?;
        let mut incoming = BytesMut::new();
        let limits = loop {
            packet::check_first(&incoming)?;
            match packet::read(config.version, &mut incoming)? {
                Some(Incoming::Connected(limits)) => break limits,
                Some(Incoming::Refused(refusal)) => return Err(refusal.into()),
                Some(_) => return Err("it did not say whether it lets this client in".to_owned().into()),
                None if reader.read_buf(&mut incoming).await.map_err(unreachable)? == 0 => {
                    let text = "it closed the connection without a word; is it an MQTT server?";
                    return Err(Unusable::Away(text.to_owned()));
                }
                None => {}
            }
        };
        check_qos(config.qos, limits.qos)?;
        let now = Instant::now();
        let keep_alive = limits.keep_alive.map_or(config.keep_alive, |secs| Duration::from_secs(secs.into()));
        let link = Self {
            reader,
            writer,
            incoming,
            outgoing,
            is_flushed: true,
            config: config.clone(),
            in_flight: in_flight(config, limits),
            keep_alive: Some(keep_alive).filter(|time| !time.is_zero()),
            waiting: HashMap::new(),
            last_id: 0,
            pings: Vec::new(),
            probe: None,
            last_sent: now,
            progress: now,
        };
        Ok((link, limits))
    }

    /// Until it ends. What waits to be sent is let go of with it, after the reason is known.
    async fn run(
        &mut self,
        mut messages: mpsc::UnboundedReceiver<(Message, Answering)>,
        mut control: mpsc::UnboundedReceiver<Control>,
        ended: &OnceLock<String>,
    ) -> End {
        let end = loop {
            match self.step(&mut messages, &mut control).await {
                Ok(()) => {}
                Err(end) => break end,
            }
        };
        let _ = ended.set(end.reason().to_owned());
        end
    }

    async fn step(
        &mut self,
        messages: &mut mpsc::UnboundedReceiver<(Message, Answering)>,
        control: &mut mpsc::UnboundedReceiver<Control>,
    ) -> Result<(), End> {
        let wake = self.wake();
        tokio::select! {
            read = self.reader.read_buf(&mut self.incoming) => match read {
                Ok(0) => Err(End::Lost("it closed the connection".to_owned())),
                Ok(_) => self.hear(),
                Err(error) => Err(End::lost(&error)),
            },
            written = write_some(&mut self.writer, &mut self.outgoing, &mut self.is_flushed),
                if !self.outgoing.is_empty() || !self.is_flushed =>
            {
                written.map_err(|error| End::lost(&error))
            }
            message = messages.recv(), if self.has_room() => {
                let Some((message, answering)) = message else { return self.say_farewell().await };
                self.send(message, answering)?;
                // As many as can go at once.
                while self.has_room() {
                    let Ok((message, answering)) = messages.try_recv() else { break };
                    self.send(message, answering)?;
                }
                Ok(())
            }
            control = control.recv() => match control {
                Some(Control::Ping(answering)) => {
                    self.pings.push(answering);
                    self.ping(false);
                    Ok(())
                }
                Some(Control::GiveUp(reason)) => Err(End::Lost(reason)),
                Some(Control::Close(answering)) => {
                    let end = self.say_farewell().await;
                    let _ = answering.send(());
                    end
                }
                None => self.say_farewell().await,
            },
            () = sleep_until(wake) => self.on_time(),
        }
    }

    fn has_room(&self) -> bool {
        self.waiting.len() < self.in_flight && self.outgoing.len() < BUFFER
    }

    fn send(&mut self, message: Message, answering: Answering) -> Result<(), End> {
        // Its call was dropped.
        if answering.is_closed() {
            return Ok(());
        }
        let now = Instant::now();
        if self.waiting.is_empty() {
            self.progress = now;
        }
        let id = self.next_id();
        message.with_id(id).write(&mut self.outgoing).map_err(End::Lost)?;
        self.waiting.insert(id, Waiting { answering, received: None });
        self.last_sent = now;
        Ok(())
    }

    /// A number that no message on its way has. There is one: fewer are on their way than there are numbers.
    fn next_id(&mut self) -> u16 {
        loop {
            self.last_id = self.last_id.checked_add(1).unwrap_or(1);
            if !self.waiting.contains_key(&self.last_id) {
                return self.last_id;
            }
        }
    }

    fn ping(&mut self, is_last_hope: bool) {
        packet::write_ping(&mut self.outgoing);
        let now = Instant::now();
        self.last_sent = now;
        let patience = PING_TIMEOUT.min(self.config.timeout);
        self.probe.get_or_insert(Probe { deadline: now + patience, is_last_hope });
    }

    /// When it is time for something.
    fn wake(&self) -> Instant {
        let far = Instant::now() + Duration::from_secs(3_600);
        if let Some(probe) = &self.probe {
            return probe.deadline;
        }
        let keep_alive = self.keep_alive.map_or(far, |time| self.last_sent + time);
        let late = if self.waiting.is_empty() { far } else { self.progress + self.config.timeout };
        keep_alive.min(late)
    }

    fn on_time(&mut self) -> Result<(), End> {
        let now = Instant::now();
        match &self.probe {
            Some(probe) if probe.deadline <= now => Err(End::Lost("it does not answer".to_owned())),
            Some(_) => Ok(()),
            None => {
                self.ping(!self.waiting.is_empty() && self.progress + self.config.timeout <= now);
                Ok(())
            }
        }
    }

    /// Takes in what has come.
    fn hear(&mut self) -> Result<(), End> {
        while let Some(said) = packet::read(self.config.version, &mut self.incoming).map_err(End::Lost)? {
            match said {
                Incoming::Acknowledged(id, verdict) | Incoming::Completed(id, verdict) => {
                    self.answer(id, verdict)?;
                }
                Incoming::Received(id, verdict) => self.receive(id, verdict)?,
                Incoming::Pong => self.pong()?,
                Incoming::Disconnected { reason, is_blame } => {
                    let reason = format!("it closed the connection: {reason}");
                    return Err(if is_blame { End::Blamed(reason) } else { End::Lost(reason) });
                }
                Incoming::Connected(_) | Incoming::Refused(_) | Incoming::Other => {}
            }
        }
        Ok(())
    }

    fn answer(&mut self, id: u16, verdict: Verdict) -> Result<(), End> {
        let Waiting { answering, received } = self.waiting.remove(&id).ok_or_else(unasked)?;
        // The first has what there is to say, if nothing went wrong since.
        let verdict = received.filter(|_| verdict == Verdict::Taken).unwrap_or(verdict);
        // Its call may have been dropped.
        let _ = answering.send(Answer::Said(verdict));
        self.advance();
        Ok(())
    }

    /// The first of two answers; there is no second one if it is a refusal.
    fn receive(&mut self, id: u16, verdict: Verdict) -> Result<(), End> {
        if !matches!(verdict, Verdict::Taken | Verdict::NoSubscriber) {
            return self.answer(id, verdict);
        }
        self.waiting.get_mut(&id).ok_or_else(unasked)?.received = Some(verdict);
        packet::write_release(id, &mut self.outgoing);
        self.last_sent = Instant::now();
        self.advance();
        Ok(())
    }

    fn advance(&mut self) {
        self.progress = Instant::now();
        if let Some(probe) = &mut self.probe {
            probe.is_last_hope = false;
        }
    }

    fn pong(&mut self) -> Result<(), End> {
        for ping in self.pings.drain(..) {
            let _ = ping.send(());
        }
        match self.probe.take() {
            Some(probe) if probe.is_last_hope => {
                Err(End::Blamed("it answers, but did not acknowledge in time".to_owned()))
            }
            _ => Ok(()),
        }
    }

    /// Ends politely.
    async fn say_farewell(&mut self) -> Result<(), End> {
        packet::write_disconnect(&mut self.outgoing);
        let saying = async {
            self.writer.write_all_buf(&mut self.outgoing).await?;
            self.writer.shutdown().await
        };
        let _ = timeout(FAREWELL, saying).await;
        Err(End::Lost("the sink was closed".to_owned()))
    }

    /// Tells who waits that it has ended. Who is told nothing knows that it was lost.
    fn tell(&mut self, end: End) {
        if let End::Blamed(reason) = end {
            for (_, waiting) in self.waiting.drain() {
                let _ = waiting.answering.send(Answer::Unsaid(reason.clone()));
            }
        }
    }
}

/// Writes what can be written at once. It may be dropped at any time: the next call goes on from there.
async fn write_some(
    writer: &mut WriteHalf<Box<dyn Stream>>,
    outgoing: &mut BytesMut,
    is_flushed: &mut bool,
) -> io::Result<()> {
    if !outgoing.is_empty() {
        *is_flushed = false;
        writer.write_buf(outgoing).await?;
    }
    if outgoing.is_empty() {
        writer.flush().await?;
        *is_flushed = true;
    }
    Ok(())
}

/// An answer to nothing: whatever it is about, no answer of this server can be trusted.
fn unasked() -> End {
    End::Lost("it acknowledged what was not sent".to_owned())
}

fn in_flight(config: &MqttConfig, limits: Limits) -> usize {
    let said = match config.version {
        // A server that says nothing takes as many as there are numbers.
        super::MqttVersion::V5 => limits.in_flight.unwrap_or(u16::MAX),
        super::MqttVersion::V3 => IN_FLIGHT,
    };
    usize::from(said.clamp(1, u16::MAX - 1))
}

fn check_qos(wanted: MqttQos, max: Option<u8>) -> Result<(), String> {
    match (wanted, max) {
        (_, Some(0)) => Err("it acknowledges nothing: its highest quality of service is 0".to_owned()),
        (MqttQos::Two, Some(1)) => Err("it takes QoS 1 and not 2; configure the `qos` so".to_owned()),
        _ => Ok(()),
    }
}
