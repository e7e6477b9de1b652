//! A transactional output on RocketMQ: the framework's local work inside the client's, and the broker's questions.
//!
//! ```text
//! LocalWork ─▶ TransactionProducer::transaction ─▶ half message ─▶ work ─▶ END_TRANSACTION ─▶ TxReceipt
//! CHECK_TRANSACTION_STATE ─▶ Questions ─▶ ListenerHandle::check
//! ```

use std::sync::Arc;

use bindery_client::{
    BoxError, LocalState as ClientState, MessageExt, TransactionArgs, TransactionListener,
    TransactionProducer, TransactionSendResult,
};

use super::translate::{InputFacts, half, incoming, receipt, send_error};
use crate::binding::SendError;
use crate::pipeline::Chain;
use crate::transaction::{
    HalfMessage, ListenerHandle, LocalFailure, LocalState, LocalWork, TxArgs, TxReceipt,
};

/// What the client asks when a broker asks it.
#[derive(Debug)]
pub(super) struct Questions {
    listener: ListenerHandle,
    facts: InputFacts,
}

impl Questions {
    pub(super) fn new(listener: ListenerHandle, binding: &str, group: &str) -> Self {
        Self {
            listener,
            facts: InputFacts::plain(binding, group),
        }
    }
}

impl TransactionListener for Questions {
    async fn execute_local(
        &self,
        message: &bindery_client::HalfMessage,
        _args: &TransactionArgs,
    ) -> Result<ClientState, BoxError> {
        let half = half(message);
        let state = self.listener.execute(&half, &TxArgs::none()).await?;
        Ok(client_state(state))
    }

    async fn check_local(&self, message: &MessageExt) -> Result<ClientState, BoxError> {
        let id = message.transaction_id().unwrap_or(message.msg_id());
        let half = HalfMessage::new(incoming(&self.facts, message), id);
        Ok(client_state(self.listener.check(&half).await?))
    }
}

/// One transactional send.
pub(super) async fn send_in_transaction(
    producer: &TransactionProducer,
    binding: &str,
    message: bindery_client::Message,
    work: LocalWork<'_>,
) -> Result<TxReceipt, SendError> {
    let topic = message.topic().to_owned();
    let local = move |message: bindery_client::HalfMessage| async move {
        match work(half(&message)).await {
            Ok(state) => (client_state(state), None),
            Err(error) => (ClientState::Unknown, Some(LocalFailure::Failed(error))),
        }
    };
    let (result, failed) = producer
        .transaction(message, local)
        .await
        .map_err(|error| send_error(binding, &topic, error))?;
    let TransactionSendResult {
        sent,
        transaction_id,
        state,
        reported,
        ..
    } = result;
    // A half message that is not stored safely has been rolled back, and nothing was done for it.
    let sent = receipt(binding, sent)?;
    // Without a value the work panicked, which the client has told in the log.
    let failure = failed.unwrap_or(Some(LocalFailure::Panicked));
    if let Some(failure @ LocalFailure::Failed(_)) = &failure {
        tracing::warn!(binding, transaction_id, error = %Chain(failure), "local transaction without outcome: the broker will ask");
    }
    let mut receipt = TxReceipt::new(sent, transaction_id, framework_state(state));
    receipt.reported = reported;
    receipt.failure = failure.map(|failure| Arc::new(failure) as _);
    Ok(receipt)
}

fn client_state(state: LocalState) -> ClientState {
    match state {
        LocalState::Commit => ClientState::Commit,
        LocalState::Rollback => ClientState::Rollback,
        LocalState::Unknown => ClientState::Unknown,
    }
}

fn framework_state(state: ClientState) -> LocalState {
    match state {
        ClientState::Commit => LocalState::Commit,
        ClientState::Rollback => LocalState::Rollback,
        ClientState::Unknown => LocalState::Unknown,
    }
}
