//! `Bound<S>`: a `#[bindings]` struct as an argument of handlers and of axum routes.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::bindings::Bindings;
use crate::handler::{AppContext, FromMessage, MessageContext, Rejection, Requirement};
use crate::registry::BindingSource;
use crate::web::{MissingFromApp, app_context};

/// A `#[bindings]` struct, connected. Cheap to clone; every clone is the same instance.
#[derive(Debug)]
pub struct Bound<S>(Arc<S>);

impl<S> Bound<S> {
    pub(crate) fn new(source: Arc<S>) -> Self {
        Self(source)
    }
}

impl<S> Clone for Bound<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Deref for Bound<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.0
    }
}

impl<S: BindingSource> FromMessage for Bound<S> {
    const REQUIRES: &'static [Requirement] = &[Requirement::Source {
        descriptor: S::descriptor,
    }];

    async fn from_message(cx: &MessageContext<'_>) -> Result<Self, Rejection> {
        bound(cx.app).ok_or(Rejection::Missing {
            type_name: std::any::type_name::<S>(),
        })
    }
}

impl<S: BindingSource, R: Send + Sync> FromRequestParts<R> for Bound<S> {
    type Rejection = MissingFromApp;

    async fn from_request_parts(parts: &mut Parts, _state: &R) -> Result<Self, MissingFromApp> {
        let missing = MissingFromApp {
            type_name: std::any::type_name::<S>(),
        };
        app_context(parts)
            .and_then(|app| bound(&app))
            .ok_or(missing)
    }
}

fn bound<S: BindingSource>(app: &AppContext) -> Option<Bound<S>> {
    let source = app.extension::<Bindings>()?.source::<S>();
    match source {
        Ok(source) => Some(Bound(source)),
        Err(error) => {
            // Checked at start for every handler and source that is registered; a route may still ask for another.
            tracing::error!(%error, source = S::descriptor().name, "bindings are missing");
            None
        }
    }
}
