//! The web server: the program's routes and the actuator, under one context path.
//!
//! ```text
//! server.port ─▶ WebAddress (taken before anything connects) ─▶ WebServer ─┬─ /context-path/… the program's routes
//!                                                                          └─ /context-path/actuator/…
//! ```

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::actuator;
use crate::binder::Binder;
use crate::config::{Config, ServerConfig};
use crate::error::{Error, Result};
use crate::handler::{AppContext, State};

/// Spring Boot's port, taken when the program has routes and the configuration names none.
const DEFAULT_PORT: u16 = 8080;

/// Time allowed for requests that are being answered when the application stops.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// An address that is ours.
#[derive(Debug)]
pub(crate) struct WebAddress {
    listener: TcpListener,
    address: SocketAddr,
}

impl WebAddress {
    /// Takes the configured port; `None` when there is nothing to serve and no port is configured.
    pub(crate) async fn take(server: &ServerConfig, has_routes: bool) -> Result<Option<Self>> {
        let port = match server.port {
            Some(port) => port,
            None if has_routes => DEFAULT_PORT,
            None => return Ok(None),
        };
        let host = server.address.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        let refused = |source| Error::WebAddress { port, source };
        let listener = TcpListener::bind((host, port)).await.map_err(refused)?;
        let address = listener.local_addr().map_err(refused)?;
        Ok(Some(Self { listener, address }))
    }
}

/// The running web server.
#[derive(Debug)]
pub(crate) struct WebServer {
    address: SocketAddr,
    stop: CancellationToken,
    serving: JoinSet<std::io::Result<()>>,
}

impl WebServer {
    pub(crate) fn start(
        address: WebAddress,
        config: &Config,
        routes: Router,
        context: Arc<AppContext>,
        binders: &BTreeMap<String, Arc<dyn Binder>>,
    ) -> Self {
        let own = routes
            .merge(actuator::routes(config, binders))
            .fallback(not_found);
        let all = match config.server.context_path.as_str() {
            "" => own,
            prefix => Router::new().nest(prefix, own).fallback(not_found),
        };
        let all = all.layer(Extension(context));
        let stop = CancellationToken::new();
        let asked = stop.clone();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            axum::serve(address.listener, all)
                .with_graceful_shutdown(asked.cancelled_owned())
                .await
        });
        Self {
            address: address.address,
            stop,
            serving,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Takes no more requests and lets those under way finish for a moment.
    pub(crate) async fn stop(mut self) -> Result<()> {
        self.stop.cancel();
        match tokio::time::timeout(STOP_GRACE, self.serving.join_next()).await {
            Ok(Some(Ok(served))) => served.map_err(Error::Web),
            Ok(Some(Err(panicked))) => Err(Error::User(Box::new(panicked))),
            // A client that keeps its connection open is cut off: dropping the set ends the task.
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

async fn not_found(uri: Uri) -> (StatusCode, Json<serde_json::Value>) {
    (
        StatusCode::NOT_FOUND,
        Json(json!({ "error": "not found", "path": uri.path() })),
    )
}

/// What the application shares with routes, as [`WebServer::start`] put it there.
pub(crate) fn app_context(parts: &Parts) -> Option<Arc<AppContext>> {
    parts.extensions.get::<Arc<AppContext>>().cloned()
}

/// An extractor of a route asks for what the application does not have. Answers 500.
#[derive(Debug, Clone, Copy)]
pub struct MissingFromApp {
    pub(crate) type_name: &'static str,
}

impl fmt::Display for MissingFromApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the application has no {}", self.type_name)
    }
}

impl std::error::Error for MissingFromApp {}

impl IntoResponse for MissingFromApp {
    fn into_response(self) -> Response {
        tracing::error!(
            type_name = self.type_name,
            "a route asks for what the application does not have"
        );
        (
            StatusCode::INTERNAL_SERVER_ERROR,
            Json(json!({ "error": self.to_string() })),
        )
            .into_response()
    }
}

impl<T: Clone + Send + Sync + 'static, R: Send + Sync> FromRequestParts<R> for State<T> {
    type Rejection = MissingFromApp;

    async fn from_request_parts(
        parts: &mut Parts,
        _state: &R,
    ) -> std::result::Result<Self, MissingFromApp> {
        let value = app_context(parts).and_then(|app| app.extension::<T>());
        value
            .map(|value| Self((*value).clone()))
            .ok_or(MissingFromApp {
                type_name: std::any::type_name::<T>(),
            })
    }
}

#[cfg(test)]
mod tests;
