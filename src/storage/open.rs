//! From a URL to a folder in a store, configured by the environment its users already have.

use std::collections::{BTreeMap, HashMap};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::memory::InMemory;
use object_store::{ObjectStore, RetryConfig};
use url::Url;

use super::counters::{Counters, CountingConnector};
use super::{Backend, Root, Store};
use crate::error::{Error, ErrorKind, Result};

/// How long the machine's own metadata service may take to show that it exists. A user without
/// credentials learns it within two seconds.
const METADATA_WAIT: Duration = Duration::from_millis(1500);

/// Environment variables, taken once and passed down.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// From pairs of name and value.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// One variable; an empty one counts as absent.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.value(name).is_some())
    }

    fn with_prefix<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (String, &'a str)> {
        self.0
            .iter()
            .filter(move |(name, _)| name.starts_with(prefix))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.as_str()))
    }
}

/// Opens stores, each once.
#[derive(Debug, Default)]
pub struct Stores {
    environment: Environment,
    opened: Mutex<HashMap<String, Arc<Store>>>,
}

impl Stores {
    /// Stores configured by an environment.
    pub fn new(environment: Environment) -> Self {
        Self { environment, opened: Mutex::default() }
    }

    /// The environment they are configured by.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Opens the folder that a URL or path names. A relative path is relative to `base`.
    ///
    /// # Errors
    /// `Invalid` for a URL of a kind that is not known, or without credentials.
    pub fn root(&self, url: &str, base: &Path) -> Result<Root> {
        if !url.contains("://") {
            return self.local(&base.join(url));
        }
        let parsed = Url::parse(url)
            .map_err(|error| Error::invalid("this is no URL").with("url", url).because(error))?;
        if parsed.scheme() == "file" {
            let path = parsed.to_file_path().map_err(|()| {
                Error::invalid("a file URL needs an absolute path").with("url", url)
            })?;
            return self.local(&path);
        }
        let scheme = match parsed.scheme() {
            "s3" | "s3a" => "s3",
            "az" | "abfs" | "abfss" | "azure" => "az",
            "gs" => "gs",
            "memory" => "memory",
            other => {
                return Err(Error::invalid(format!("stores of kind {other:?} are not known"))
                    .with("url", url)
                    .hint("use a path, or a URL that begins with file, s3, az, gs or memory"));
            }
        };
        let host = parsed
            .host_str()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| Error::invalid("the URL names no bucket").with("url", url))?;
        // The path as written: parsing would encode it once more.
        let written = url.split_once("://").map_or("", |(_, rest)| rest);
        let folder = written.split_once('/').map_or("", |(_, path)| path);
        let folder = folder.trim_matches('/').to_owned();
        let name = format!("{scheme}://{host}");
        let store = self.opened(&name, || match scheme {
            "s3" => s3(&self.environment, host),
            "az" => azure(&self.environment, host),
            "gs" => google(&self.environment, host),
            _ => Ok(memory()),
        })?;
        let url = if folder.is_empty() { name } else { format!("{name}/{folder}") };
        Ok(Root::new(store, folder, url))
    }

    fn local(&self, path: &Path) -> Result<Root> {
        let path = absolute(path)?;
        let text = path
            .to_str()
            .ok_or_else(|| Error::invalid("the path is not UTF-8").with("path", path.display()))?;
        let store = self.opened("file://", || {
            Ok(Store { backend: Backend::Local, counters: Arc::default() })
        })?;
        let folder = text.trim_matches('/').to_owned();
        Ok(Root::new(store, folder, text.trim_end_matches('/').to_owned()))
    }

    fn opened(&self, name: &str, open: impl FnOnce() -> Result<Store>) -> Result<Arc<Store>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = opened.get(name) {
            return Ok(Arc::clone(store));
        }
        let store = Arc::new(open()?);
        opened.insert(name.to_owned(), Arc::clone(&store));
        Ok(store)
    }

    /// Every store opened so far, by name.
    pub fn opened_stores(&self) -> BTreeMap<String, Arc<Store>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.iter().map(|(name, store)| (name.clone(), Arc::clone(store))).collect()
    }
}

/// The path without `.`, `..` and links, as far as it exists.
fn absolute(path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).map_err(|error| {
        Error::invalid("the path is not usable").with("path", path.display()).because(error)
    })?;
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            other => resolved.push(other),
        }
        if let Ok(real) = resolved.canonicalize() {
            resolved = real;
        }
    }
    Ok(resolved)
}

fn memory() -> Store {
    let data: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let commit = Arc::clone(&data);
    Store { backend: Backend::Remote { data, commit }, counters: Arc::default() }
}

fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// Two clients of one store: the second never retries.
fn pair<B>(
    build: impl Fn(CountingConnector, RetryConfig) -> object_store::Result<B>,
) -> Result<Store>
where
    B: ObjectStore,
{
    let counters = Arc::<Counters>::default();
    let client = |retries| {
        let connector = CountingConnector { counters: Arc::clone(&counters) };
        build(connector, retries).map(|store| Arc::new(store) as Arc<dyn ObjectStore>).map_err(
            |error| Error::invalid("the store's configuration is not usable").because(error),
        )
    };
    let (data, commit) = (client(RetryConfig::default())?, client(no_retries())?);
    Ok(Store { backend: Backend::Remote { data, commit }, counters })
}

fn s3(environment: &Environment, bucket: &str) -> Result<Store> {
    let given = [
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_SKIP_SIGNATURE",
    ];
    if !environment.has_any(&given) {
        let service =
            environment.value("AWS_METADATA_ENDPOINT").unwrap_or("http://169.254.169.254");
        MetadataService { url: service, request: AWS_METADATA }.require("S3",
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_REGION), or AWS_SKIP_SIGNATURE=true for a public bucket",
        )?;
    }
    pair(|connector, retries| {
        let mut builder = AmazonS3Builder::new().with_bucket_name(bucket);
        for (name, value) in environment.with_prefix("AWS_") {
            if let Ok(key) = name.parse() {
                builder = builder.with_config(key, value);
            }
        }
        builder.with_http_connector(connector).with_retry(retries).build()
    })
}

fn azure(environment: &Environment, container: &str) -> Result<Store> {
    let given = [
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_STORAGE_SAS_KEY",
        "AZURE_STORAGE_TOKEN",
        "AZURE_STORAGE_CLIENT_SECRET",
        "AZURE_CLIENT_SECRET",
        "AZURE_FEDERATED_TOKEN_FILE",
        "AZURE_STORAGE_USE_EMULATOR",
        "AZURE_USE_AZURE_CLI",
        "AZURE_SKIP_SIGNATURE",
        "IDENTITY_ENDPOINT",
    ];
    if !environment.has_any(&given) {
        let service = environment.value("AZURE_MSI_ENDPOINT").unwrap_or("http://169.254.169.254");
        MetadataService { url: service, request: AZURE_METADATA }.require("Azure",
            "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or AZURE_USE_AZURE_CLI=true",
        )?;
    }
    pair(|connector, retries| {
        let mut builder = MicrosoftAzureBuilder::new().with_container_name(container);
        for (name, value) in environment.with_prefix("AZURE_") {
            if let Ok(key) = name.parse() {
                builder = builder.with_config(key, value);
            }
        }
        builder.with_http_connector(connector).with_retry(retries).build()
    })
}

fn google(environment: &Environment, bucket: &str) -> Result<Store> {
    let given = [
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_SKIP_SIGNATURE",
    ];
    let login = environment
        .value("HOME")
        .map(|home| Path::new(home).join(".config/gcloud/application_default_credentials.json"));
    if !environment.has_any(&given) && !login.is_some_and(|file| file.exists()) {
        MetadataService { url: "http://metadata.google.internal", request: GOOGLE_METADATA }
            .require(
                "Google Cloud Storage",
                "set GOOGLE_APPLICATION_CREDENTIALS, or run: gcloud auth application-default login",
            )?;
    }
    pair(|connector, retries| {
        let mut builder = GoogleCloudStorageBuilder::new().with_bucket_name(bucket);
        for (name, value) in environment.with_prefix("GOOGLE_") {
            if let Ok(key) = name.parse() {
                builder = builder.with_config(key, value);
            }
        }
        builder.with_http_connector(connector).with_retry(retries).build()
    })
}

/// A cloud machine's metadata service: where it is and what it answers with status 200.
struct MetadataService<'a> {
    url: &'a str,
    request: &'static str,
}

const AWS_METADATA: &str = "PUT /latest/api/token HTTP/1.0\r\nX-aws-ec2-metadata-token-ttl-seconds: 60\r\nContent-Length: 0\r\n\r\n";
const AZURE_METADATA: &str =
    "GET /metadata/instance?api-version=2021-02-01 HTTP/1.0\r\nMetadata: true\r\n\r\n";
const GOOGLE_METADATA: &str =
    "GET /computeMetadata/v1/instance/id HTTP/1.0\r\nMetadata-Flavor: Google\r\n\r\n";

impl MetadataService<'_> {
    /// Without credentials in the environment, only this service can give some.
    fn require(&self, store: &str, hint: &str) -> Result<()> {
        if self.answers() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Invalid, format!("no credentials for {store} were found"))
            .with("looked at", format!("the environment, and {}", self.url))
            .hint(hint))
    }

    fn answers(&self) -> bool {
        let Ok(url) = Url::parse(self.url) else { return false };
        let (Some(host), Some(port)) =
            (url.host_str().map(str::to_owned), url.port_or_known_default())
        else {
            return false;
        };
        let request = self.request;
        // Looking a name up has no time limit of its own, so it gets a thread that may be left.
        let (sender, answer) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let granted = (host, port)
                .to_socket_addrs()
                .is_ok_and(|mut addresses| addresses.any(|address| asked(&address, request)));
            // Nobody waits any more when it took too long.
            let _ = sender.send(granted);
        });
        answer.recv_timeout(METADATA_WAIT).unwrap_or(false)
    }
}

/// Whether a server at an address answers a request with status 200.
fn asked(address: &SocketAddr, request: &str) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect_timeout(address, METADATA_WAIT)?;
        stream.set_read_timeout(Some(METADATA_WAIT))?;
        stream.write_all(request.as_bytes())?;
        let mut status = [0; 12];
        stream.read_exact(&mut status)?;
        Ok(status.ends_with(b" 200"))
    };
    ask().unwrap_or(false)
}
