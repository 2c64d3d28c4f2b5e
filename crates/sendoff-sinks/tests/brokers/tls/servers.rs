//! The servers themselves.

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use sendoff::{Sink, SinkError};
use sendoff_sinks::{InboxConfig, MqttConfig, NatsConfig, NatsStream, RabbitMqConfig, RedisConfig};
use tempfile::TempDir;

use super::{Access, FIRST, SECOND, Secured, Setting};
use crate::broker::{Broker, free_port, program};
use crate::certificates::Pair;
use crate::rabbitmq::Secure;

/// A handshake takes longer than a test of a plain connection waits, on a machine that has more to do.
pub(super) const TIMEOUT: Duration = Duration::from_secs(2);

/// The user `relay` with the second password, as `mosquitto_passwd` writes it.
const ROTATED: &str = "relay:$7$101$GaPdKwy4bBopqg9/$RTuuf8fI2nL/C/WfXKtCio6jI6/lwLSmHksCrhrOh312Qot2YHai065kP80r+U1zW7ReygVwj2aRjhGlr7pDtA==\n";

pub(super) fn local(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

/// A server may be told not to run as root, or not want to.
pub(super) fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

/// To its end, which is a good one.
pub(super) fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A process that is configured by the files in its directory.
pub(super) struct Process {
    broker: Broker,
    pub(super) port: u16,
    pub(super) directory: TempDir,
}

impl Process {
    /// Until it takes connections; `make`: the command, for its directory and port.
    pub(super) async fn start(make: impl Fn(&Path, u16) -> Command + Clone + Send + Sync + 'static) -> Self {
        loop {
            let (directory, port) = (tempfile::tempdir().unwrap(), free_port());
            let (path, make) = (directory.path().to_owned(), make.clone());
            let process = Self { broker: Broker::new(move || make(&path, port)), port, directory };
            process.broker.start();
            if process.until_ready().await {
                return process;
            }
        }
    }

    async fn until_ready(&self) -> bool {
        self.broker.until(|| TcpStream::connect(local(self.port)).is_ok()).await
    }

    async fn restart(&self) {
        self.broker.kill();
        self.broker.start();
        assert!(self.until_ready().await, "it ended when it was started again");
    }
}

pub(super) struct Redis {
    process: Process,
    own: Pair,
}

impl Redis {
    fn cli(&self, password: &str, arguments: &[&str]) -> String {
        let Pair { certificate, key } = &self.own;
        let output = Command::new(program("SENDOFF_TEST_REDIS_CLI"))
            .args(["-h", "127.0.0.1", "-p", &self.process.port.to_string(), "--tls", "--insecure", "--cert"])
            .arg(certificate)
            .arg("--key")
            .arg(key)
            .args(["--no-auth-warning", "-a", password])
            .args(arguments)
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Secured for Redis {
    async fn start(setting: &Setting<'_>) -> Self {
        let own = setting.own.clone();
        let (pair, authority, is_mutual) = (own.clone(), setting.authority.file(), setting.is_mutual);
        let process = Process::start(move |directory, port| {
            let mut command = Command::new(program("SENDOFF_TEST_REDIS"));
            command
                .args(["--bind", "127.0.0.1", "--port", "0", "--tls-port", &port.to_string(), "--save", ""])
                .args(["--requirepass", FIRST, "--tls-auth-clients", if is_mutual { "yes" } else { "no" }])
                .arg("--tls-cert-file")
                .arg(&pair.certificate)
                .arg("--tls-key-file")
                .arg(&pair.key)
                .arg("--tls-ca-cert-file")
                .arg(&authority)
                .arg("--dir")
                .arg(directory);
            command
        });
        Self { process: process.await, own }
    }

    fn address(&self) -> SocketAddr {
        local(self.process.port)
    }

    fn sink(&self, access: Access) -> Result<Arc<dyn Sink>, SinkError> {
        let (client_cert_file, client_key_file) = access.client_files();
        Ok(Arc::new(sendoff_sinks::Redis::new(RedisConfig {
            ca_file: access.ca_file,
            client_cert_file,
            client_key_file,
            password: access.password,
            timeout: TIMEOUT,
            ..RedisConfig::new(format!("rediss://{}/0", self.address()))
        })?))
    }

    async fn change_password(&self) {
        assert_eq!(self.cli(FIRST, &["CONFIG", "SET", "requirepass", SECOND]).trim(), "OK");
        self.cli(SECOND, &["CLIENT", "KILL", "TYPE", "normal"]);
    }
}

pub(super) struct Nats(Process);

impl Nats {
    fn configure(&self, password: &str) {
        configure_nats(self.0.directory.path(), password);
    }
}

fn configure_nats(directory: &Path, password: &str) {
    let text = format!("include ./tls.conf\nauthorization {{ user: relay, password: {password} }}\n");
    std::fs::write(directory.join("nats.conf"), text).unwrap();
}

impl Secured for Nats {
    async fn start(setting: &Setting<'_>) -> Self {
        let Pair { certificate, key } = &setting.own;
        let tls = format!(
            "tls {{ cert_file: \"{}\", key_file: \"{}\", ca_file: \"{}\", verify: {} }}\n",
            certificate.display(),
            key.display(),
            setting.authority.file().display(),
            setting.is_mutual
        );
        let process = Process::start(move |directory, port| {
            std::fs::write(directory.join("tls.conf"), &tls).unwrap();
            if !directory.join("nats.conf").exists() {
                configure_nats(directory, FIRST);
            }
            let mut command = Command::new(program("SENDOFF_TEST_NATS"));
            command.args(["-a", "127.0.0.1", "-p", &port.to_string(), "-js", "-sd"]).arg(directory);
            command.arg("-c").arg(directory.join("nats.conf"));
            command
        });
        let nats = Self(process.await);
        // It says hello before it encrypts.
        let mut hello = String::new();
        BufReader::new(TcpStream::connect(nats.address()).unwrap()).read_line(&mut hello).unwrap();
        assert!(hello.starts_with("INFO "), "{hello}");
        nats
    }

    fn address(&self) -> SocketAddr {
        local(self.0.port)
    }

    fn sink(&self, access: Access) -> Result<Arc<dyn Sink>, SinkError> {
        let (client_cert_file, client_key_file) = access.client_files();
        Ok(Arc::new(sendoff_sinks::Nats::new(NatsConfig {
            stream: NatsStream { name: "suite".to_owned(), create_for: vec!["suite.>".to_owned()] },
            ca_file: access.ca_file,
            client_cert_file,
            client_key_file,
            username: Some("relay".to_owned()),
            password: access.password,
            timeout: TIMEOUT,
            ..NatsConfig::new(format!("tls://{}", self.address()), "suite")
        })?))
    }

    async fn change_password(&self) {
        self.configure(SECOND);
        self.0.restart().await;
    }
}

pub(super) struct Mqtt(Process);

impl Secured for Mqtt {
    async fn start(setting: &Setting<'_>) -> Self {
        let Pair { certificate, key } = &setting.own;
        let tls = format!(
            "certfile {}\nkeyfile {}\ncafile {}\nrequire_certificate {}\n",
            certificate.display(),
            key.display(),
            setting.authority.file().display(),
            setting.is_mutual
        );
        let process = Process::start(move |directory, port| {
            let (file, passwords) = (directory.join("mosquitto.conf"), directory.join("passwords"));
            let text = format!(
                "listener {port} 127.0.0.1\nuser root\nallow_anonymous false\npassword_file {}\n{tls}",
                passwords.display()
            );
            std::fs::write(&file, text).unwrap();
            if !passwords.exists() {
                std::fs::write(&passwords, crate::mqtt::PASSWORDS).unwrap();
            }
            let mut command = Command::new(program("SENDOFF_TEST_MOSQUITTO"));
            command.arg("-c").arg(file);
            command
        });
        Self(process.await)
    }

    fn address(&self) -> SocketAddr {
        local(self.0.port)
    }

    fn sink(&self, access: Access) -> Result<Arc<dyn Sink>, SinkError> {
        let (client_cert_file, client_key_file) = access.client_files();
        Ok(Arc::new(sendoff_sinks::Mqtt::new(MqttConfig {
            ca_file: access.ca_file,
            client_cert_file,
            client_key_file,
            username: Some("relay".to_owned()),
            password: access.password,
            timeout: TIMEOUT,
            ..MqttConfig::new(format!("mqtts://{}", self.address()))
        })?))
    }

    async fn change_password(&self) {
        std::fs::write(self.0.directory.path().join("passwords"), ROTATED).unwrap();
        self.0.restart().await;
    }
}

/// The sink of another database's inbox, whichever database that is.
pub(super) fn inbox(url: &str, access: Access) -> Result<Arc<dyn Sink>, SinkError> {
    let (client_cert_file, client_key_file) = access.client_files();
    Ok(Arc::new(sendoff_sinks::Inbox::new(InboxConfig {
        create: true,
        ca_file: access.ca_file,
        client_cert_file,
        client_key_file,
        username: Some("relay".to_owned()),
        password: access.password,
        timeout: TIMEOUT,
        ..InboxConfig::new(url)
    })?))
}

pub(super) struct RabbitMq(Secure);

impl Secured for RabbitMq {
    async fn start(setting: &Setting<'_>) -> Self {
        let Pair { certificate, key } = &setting.own;
        let tls = format!(
            "ssl_options.certfile = {}\nssl_options.keyfile = {}\nssl_options.cacertfile = {}\n\
             ssl_options.verify = {}\nssl_options.fail_if_no_peer_cert = {}\n",
            certificate.display(),
            key.display(),
            setting.authority.file().display(),
            if setting.is_mutual { "verify_peer" } else { "verify_none" },
            setting.is_mutual
        );
        Self(Secure::start(&tls, FIRST).await)
    }

    fn address(&self) -> SocketAddr {
        local(self.0.port)
    }

    fn sink(&self, access: Access) -> Result<Arc<dyn Sink>, SinkError> {
        let (client_cert_file, client_key_file) = access.client_files();
        Ok(Arc::new(sendoff_sinks::RabbitMq::new(RabbitMqConfig {
            ca_file: access.ca_file,
            client_cert_file,
            client_key_file,
            username: Some("guest".to_owned()),
            password: access.password,
            timeout: Duration::from_secs(5),
            ..RabbitMqConfig::new(format!("amqps://{}", self.address()), self.0.exchange())
        })?))
    }

    async fn change_password(&self) {
        self.0.change_password(SECOND);
    }
}
