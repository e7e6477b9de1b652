//! Why a request is not carried out, and how the requester is told.
use bindery_protocol::{
    bodies::BodyError,
    codes::ResponseCode,
    frame::{HeaderError, Reply},
};

use crate::{properties::Mistake, properties::PropertiesError, store::StoreError};

/// Why a request is not carried out. The texts that Apache's name server sends are kept word for word: tools show and
/// sometimes search them.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error(" request type {0} not supported")]
    UnknownCode(i32),
    #[error("{0}")]
    Header(#[from] HeaderError),
    #[error("the body can't be read: {0}")]
    Body(#[from] BodyError),
    #[error("the body is no properties text: {0}")]
    Properties(#[from] PropertiesError),
    #[error("the body is no UTF-8 text")]
    Encoding(#[from] std::str::Utf8Error),
    #[error("{0}")]
    Setting(Mistake),
    #[error("crc32 not match")]
    Checksum,
    #[error("register broker failed")]
    IncrementFirst,
    #[error(
        "No topic route info in name server for the topic: {topic}\n\
         See https://rocketmq.apache.org/docs/bestPractice/06FAQ for further details."
    )]
    NoRoute { topic: String },
    #[error("name server not ready")]
    NotReady,
    #[error("No config item, Namespace: {namespace} Key: {key}")]
    NoKey { namespace: String, key: String },
    #[error("No config item, Namespace: {namespace}")]
    NoNamespace { namespace: String },
    #[error("disable")]
    Disabled,
    #[error("Can not update config in black list.")]
    BlackListed,
    #[error("without access control this request is served to this host only")]
    Foreign,
    #[error("the change is in force but could not be written to its file: {0}")]
    NotKept(#[from] StoreError),
    #[error("the change is in force but could not be written to {path}: {source}")]
    NotWritten {
        path: String,
        source: std::io::Error,
    },
}

impl Refusal {
    fn code(&self) -> ResponseCode {
        match self {
            Self::UnknownCode(_) => ResponseCode::REQUEST_CODE_NOT_SUPPORTED,
            Self::NoRoute { .. } => ResponseCode::TOPIC_NOT_EXIST,
            Self::NoKey { .. } | Self::NoNamespace { .. } => ResponseCode::QUERY_NOT_FOUND,
            Self::BlackListed | Self::Foreign => ResponseCode::NO_PERMISSION,
            Self::Header(_)
            | Self::Body(_)
            | Self::Properties(_)
            | Self::Encoding(_)
            | Self::Setting(_)
            | Self::Checksum
            | Self::IncrementFirst
            | Self::NotReady
            | Self::Disabled
            | Self::NotKept(_)
            | Self::NotWritten { .. } => ResponseCode::SYSTEM_ERROR,
        }
    }

    /// The answer that says so.
    pub(super) fn reply(&self) -> Reply {
        Reply::error(self.code(), self.to_string())
    }
}
