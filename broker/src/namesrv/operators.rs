//! What operators ask: keys and values, lists of topics, deleted topics, the configuration.
//!
//! ```text
//! Processor::answer ─▶ header, body ─▶ KvStore, RouteTable, NameServerConfig ─▶ Reply, after the file if one changed
//! ```
use std::sync::MutexGuard;

use bindery_protocol::{
    bodies::{self, RouteData},
    frame::{Frame, Reply},
    headers::{
        ClusterTopicsHeader, DeleteRouteHeader, KvHeader, KvListHeader, KvReply, PutKvHeader,
        RouteHeader,
    },
};

use super::{
    kv::ORDER_TOPIC_CONFIG,
    lookup::UnitTopics,
    processor::{Keep, Outcome, Processor, State, json},
    refusal::Refusal,
};
use crate::properties::Properties;

impl Processor {
    pub(super) fn put_kv(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: PutKvHeader<'_> = frame.header()?;
        let mut state = self.state();
        state.kv.put(&header.namespace, &header.key, &header.value);
        if header.namespace == ORDER_TOPIC_CONFIG {
            state.routes.forget_encoded(Some(&header.key));
        }
        Ok(Outcome::After(Keep::Kv))
    }

    pub(super) fn kv_value(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: KvHeader<'_> = frame.header()?;
        let state = self.state();
        let Some(value) = state.kv.value(&header.namespace, &header.key) else {
            return Err(Refusal::NoKey {
                namespace: header.namespace.into_owned(),
                key: header.key.into_owned(),
            });
        };
        Ok(Reply::ok()
            .with(&KvReply {
                value: Some(value.into()),
            })
            .into())
    }

    pub(super) fn delete_kv(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: KvHeader<'_> = frame.header()?;
        let mut state = self.state();
        state.kv.delete(&header.namespace, &header.key);
        if header.namespace == ORDER_TOPIC_CONFIG {
            state.routes.forget_encoded(Some(&header.key));
        }
        Ok(Outcome::After(Keep::Kv))
    }

    pub(super) fn kv_namespace(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: KvListHeader<'_> = frame.header()?;
        match self.state().kv.namespace(&header.namespace) {
            Some(table) => json(&table),
            None => Err(Refusal::NoNamespace {
                namespace: header.namespace.into_owned(),
            }),
        }
    }

    pub(super) fn delete_topic(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: DeleteRouteHeader<'_> = frame.header()?;
        let cluster = header
            .cluster_name
            .as_deref()
            .filter(|cluster| !cluster.is_empty());
        self.state().routes.delete_topic(&header.topic, cluster);
        Ok(Reply::ok().into())
    }

    pub(super) fn register_topic(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: RouteHeader<'_> = frame.header()?;
        let route: RouteData = bodies::from_slice(&frame.body)?;
        self.state()
            .routes
            .register_topic(&header.topic, route.queue_datas);
        Ok(Reply::ok().into())
    }

    pub(super) fn all_topics(&self) -> Result<Outcome, Refusal> {
        let state = self.state();
        if !state.config.enable_all_topic_list {
            return Err(Refusal::Disabled);
        }
        json(&state.routes.all_topics())
    }

    pub(super) fn cluster_topics(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let header: ClusterTopicsHeader<'_> = frame.header()?;
        json(&self.listing()?.routes.cluster_topics(&header.cluster))
    }

    pub(super) fn system_topics(&self) -> Result<Outcome, Refusal> {
        json(&self.listing()?.routes.system_topics())
    }

    pub(super) fn unit_topics(&self, which: UnitTopics) -> Result<Outcome, Refusal> {
        json(&self.listing()?.routes.unit_topics(which))
    }

    /// The state, if topics may be listed.
    fn listing(&self) -> Result<MutexGuard<'_, State>, Refusal> {
        let state = self.state();
        if state.config.enable_topic_list {
            Ok(state)
        } else {
            Err(Refusal::Disabled)
        }
    }

    pub(super) fn change_config(&self, frame: &Frame) -> Result<Outcome, Refusal> {
        let properties = Properties::parse(std::str::from_utf8(&frame.body)?)?;
        let mut state = self.state();
        state.config.change(&properties)?;
        // Order configurations may now belong into routes, or no longer.
        state.routes.forget_encoded(None);
        Ok(Outcome::After(Keep::Config))
    }
}
