//! A handler as an application holds it, and the explicit way to describe one.
//!
//! ```text
//! HandlerDescriptor ──From──▶ Handler ◀──to(function)── Handler::listen("in").condition(..).send_to("out")
//! ```

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use bindery_expression::{Expression, ParseError};

use super::{HandlerDescriptor, HandlerKind, OnUnmatched};
use crate::handler::{
    BoxFuture, Callable, CallableWithReply, ErasedHandler, HandlerResult, MessageContext,
    Requirement, catching,
};

/// A handler of an application. A handle: cloning shares the function.
#[derive(Clone)]
pub struct Handler {
    name: Cow<'static, str>,
    module: Cow<'static, str>,
    file: Cow<'static, str>,
    line: u32,
    kind: HandlerKind,
    binding: Cow<'static, str>,
    condition: Option<Cow<'static, str>>,
    parsed: Result<Option<Arc<Expression>>, ParseError>,
    send_to: Vec<Cow<'static, str>>,
    copy_headers: bool,
    on_unmatched: OnUnmatched,
    requires: Vec<Requirement>,
    call: Arc<dyn ErasedHandler>,
}

impl Handler {
    /// Starts the description of a listener on an input binding; its place is the caller's.
    ///
    /// ```
    /// # use bindery::registry::Handler;
    /// async fn on_order(text: String) {
    ///     println!("{text}");
    /// }
    /// let handler = Handler::listen("orders").condition("headers['type'] == 'order'").to(on_order);
    /// assert_eq!(handler.binding(), "orders");
    /// ```
    #[track_caller]
    pub fn listen(binding: impl Into<Cow<'static, str>>) -> Listen {
        let caller = std::panic::Location::caller();
        Listen {
            binding: binding.into(),
            name: None,
            condition: None,
            copy_headers: true,
            on_unmatched: OnUnmatched::default(),
            file: caller.file(),
            line: caller.line(),
        }
    }

    /// The function's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The module it stands in.
    #[must_use]
    pub fn module(&self) -> &str {
        &self.module
    }

    /// The file it stands in.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The line in the file, counted from 1.
    #[must_use]
    pub fn line(&self) -> u32 {
        self.line
    }

    /// What kind of function it is.
    #[must_use]
    pub fn kind(&self) -> HandlerKind {
        self.kind
    }

    /// The input binding.
    #[must_use]
    pub fn binding(&self) -> &str {
        &self.binding
    }

    /// The condition as written.
    #[must_use]
    pub fn condition_text(&self) -> Option<&str> {
        self.condition.as_deref()
    }

    /// The condition, parsed; `None` takes every message.
    ///
    /// # Errors
    /// The condition of an explicitly registered handler does not parse.
    pub fn condition(&self) -> Result<Option<&Expression>, &ParseError> {
        self.parsed.as_ref().map(Option::as_deref)
    }

    /// The bindings the return value goes to.
    #[must_use]
    pub fn send_to(&self) -> impl ExactSizeIterator<Item = &str> {
        self.send_to.iter().map(|binding| &**binding)
    }

    /// Whether answers take over the headers of the message.
    #[must_use]
    pub fn copy_headers(&self) -> bool {
        self.copy_headers
    }

    /// What becomes of messages that no condition matches.
    #[must_use]
    pub fn on_unmatched(&self) -> OnUnmatched {
        self.on_unmatched
    }

    /// What the arguments require of the application.
    #[must_use]
    pub fn requirements(&self) -> &[Requirement] {
        &self.requires
    }

    /// The same handler with something around its calls.
    pub(crate) fn around(
        self,
        wrap: impl FnOnce(&Self, Arc<dyn ErasedHandler>) -> Arc<dyn ErasedHandler>,
    ) -> Self {
        let call = wrap(&self, Arc::clone(&self.call));
        Self { call, ..self }
    }

    /// Extracts the arguments, runs the function, converts its result.
    #[must_use]
    pub fn call<'a>(&'a self, cx: MessageContext<'a>) -> BoxFuture<'a, HandlerResult> {
        self.call.call(cx)
    }
}

impl From<&'static HandlerDescriptor> for Handler {
    fn from(descriptor: &'static HandlerDescriptor) -> Self {
        Self {
            name: descriptor.name.into(),
            module: descriptor.module.into(),
            file: descriptor.file.into(),
            line: descriptor.line,
            kind: descriptor.kind,
            binding: descriptor.binding.into(),
            condition: descriptor.condition.map(Cow::from),
            parsed: parse(descriptor.condition),
            send_to: descriptor
                .send_to
                .iter()
                .map(|binding| Cow::from(*binding))
                .collect(),
            copy_headers: descriptor.copy_headers,
            on_unmatched: descriptor.on_unmatched,
            requires: descriptor.requires.concat(),
            call: Arc::new(descriptor.call),
        }
    }
}

fn parse(condition: Option<&str>) -> Result<Option<Arc<Expression>>, ParseError> {
    condition
        .map(|text| bindery_expression::parse(text).map(Arc::new))
        .transpose()
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler")
            .field("name", &self.name)
            .field("module", &self.module)
            .field("line", &self.line)
            .field("binding", &self.binding)
            .field("condition", &self.condition)
            .field("send_to", &self.send_to)
            .finish_non_exhaustive()
    }
}

/// A listener that is being described; see [`Handler::listen`].
#[derive(Debug)]
#[must_use = "finish with `to`"]
pub struct Listen {
    binding: Cow<'static, str>,
    name: Option<Cow<'static, str>>,
    condition: Option<Cow<'static, str>>,
    copy_headers: bool,
    on_unmatched: OnUnmatched,
    file: &'static str,
    line: u32,
}

impl Listen {
    /// Names the handler in reports; the default is the function's type.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Takes only the messages for which the expression is true.
    pub fn condition(mut self, condition: impl Into<Cow<'static, str>>) -> Self {
        self.condition = Some(condition.into());
        self
    }

    /// Whether answers take over the headers of the message. Default true.
    pub fn copy_headers(mut self, copy: bool) -> Self {
        self.copy_headers = copy;
        self
    }

    /// What becomes of messages that no condition matches. Default [`OnUnmatched::Warn`].
    pub fn on_unmatched(mut self, on_unmatched: OnUnmatched) -> Self {
        self.on_unmatched = on_unmatched;
        self
    }

    /// Sends what the function returns to a binding.
    pub fn send_to(self, binding: impl Into<Cow<'static, str>>) -> ListenAndSend {
        ListenAndSend {
            listen: self,
            output: binding.into(),
        }
    }

    /// Finishes with the function to call.
    pub fn to<F, A>(self, function: F) -> Handler
    where
        F: Callable<A>,
        A: 'static,
    {
        self.finish::<F>(
            Vec::new(),
            F::requirements(),
            Arc::new(Listener(function, PhantomData)),
        )
    }

    fn finish<F>(
        self,
        send_to: Vec<Cow<'static, str>>,
        requires: Vec<Requirement>,
        call: Arc<dyn ErasedHandler>,
    ) -> Handler {
        let path = std::any::type_name::<F>();
        let (module, function) = path.rsplit_once("::").unwrap_or(("", path));
        Handler {
            name: self.name.unwrap_or(Cow::Borrowed(function)),
            module: module.into(),
            file: self.file.into(),
            line: self.line,
            kind: HandlerKind::Listener,
            binding: self.binding,
            parsed: parse(self.condition.as_deref()),
            condition: self.condition,
            send_to,
            copy_headers: self.copy_headers,
            on_unmatched: self.on_unmatched,
            requires,
            call,
        }
    }
}

/// A listener with an answer that is being described.
#[derive(Debug)]
#[must_use = "finish with `to`"]
pub struct ListenAndSend {
    listen: Listen,
    output: Cow<'static, str>,
}

impl ListenAndSend {
    /// Finishes with the function to call.
    pub fn to<F, A>(self, function: F) -> Handler
    where
        F: CallableWithReply<A>,
        A: 'static,
    {
        let call = Arc::new(Replier(function, PhantomData));
        self.listen
            .finish::<F>(vec![self.output], F::requirements(), call)
    }
}

struct Listener<F, A>(F, PhantomData<fn(A)>);

impl<F: Callable<A>, A: 'static> ErasedHandler for Listener<F, A> {
    fn call<'a>(&'a self, cx: MessageContext<'a>) -> BoxFuture<'a, HandlerResult> {
        catching(self.0.run(cx))
    }
}

struct Replier<F, A>(F, PhantomData<fn(A)>);

impl<F: CallableWithReply<A>, A: 'static> ErasedHandler for Replier<F, A> {
    fn call<'a>(&'a self, cx: MessageContext<'a>) -> BoxFuture<'a, HandlerResult> {
        catching(self.0.run(cx))
    }
}
