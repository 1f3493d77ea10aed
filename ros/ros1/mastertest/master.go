// Package mastertest is a ROS 1 master for tests: what rosmaster does with topics and services, in the process of the test.
package mastertest

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/bluenviron/goroslib/v2/pkg/apimaster"
	"github.com/bluenviron/goroslib/v2/pkg/apislave"
	"github.com/bluenviron/goroslib/v2/pkg/xmlrpc"
)

// Master is a ROS master.
type Master struct {
	t       testing.TB
	address string // "" = any port
	server  *xmlrpc.Server
	http    *http.Client
	calls   sync.WaitGroup

	mu         sync.Mutex
	pubs, subs map[string]map[string]string // URIs by topic and node
	types      map[string]string
	services   map[string]map[string]string
}

// Start starts a master on loopback. It ends with the test.
func Start(t testing.TB) *Master {
	t.Helper()
	m := &Master{t: t, address: "127.0.0.1:0"}
	m.Start()
	t.Cleanup(m.Stop)
	return m
}

// Start starts a stopped master again, with an empty memory, at the address of before.
func (m *Master) Start() {
	m.t.Helper()
	m.mu.Lock()
	m.pubs, m.subs, m.types = map[string]map[string]string{}, map[string]map[string]string{}, map[string]string{}
	m.services = map[string]map[string]string{}
	m.http = &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	m.mu.Unlock()
	var err error
	for range 200 { // the port of before may not be free at once
		if m.server, err = xmlrpc.NewServer(m.address, time.Second); err == nil {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if err != nil {
		m.t.Fatal(err)
	}
	u, _ := url.Parse(m.server.URL(net.IPv4(127, 0, 0, 1), ""))
	m.address = u.Host
	m.server.Serve(m.handle)
}

// Stop ends the master.
func (m *Master) Stop() {
	if m.server != nil {
		m.server.Close()
		m.server = nil
		m.calls.Wait()
	}
}

// URI is what ROS_MASTER_URI is set to.
func (m *Master) URI() string { return "http://" + m.address + "/" }

// Service is where a service is offered, "rosrpc://host:port"; "" if nowhere.
func (m *Master) Service(name string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, u := range m.services[name] {
		return u
	}
	return ""
}

func entries(of map[string]map[string]string) []apimaster.SystemStateEntry {
	out := []apimaster.SystemStateEntry{}
	for topic, nodes := range of {
		e := apimaster.SystemStateEntry{Name: topic, Nodes: []string{}}
		for n := range nodes {
			e.Nodes = append(e.Nodes, n)
		}
		if len(e.Nodes) > 0 {
			out = append(out, e)
		}
	}
	return out
}

func uris(of map[string]string) []string {
	out := []string{}
	for _, u := range of {
		out = append(out, u)
	}
	slices.Sort(out)
	return out
}

func (m *Master) handle(r *xmlrpc.RequestRaw) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch r.Method {
	case "getUri":
		return apimaster.ResponseGetURI{Code: 1, MasterURI: "http://" + m.address}
	case "getSystemState":
		return apimaster.ResponseGetSystemState{Code: 1, State: apimaster.SystemState{PublishedTopics: entries(m.pubs),
			SubscribedTopics: entries(m.subs), ProvidedServices: entries(m.services)}}
	case "getTopicTypes":
		types := []apimaster.TopicType{}
		for n, t := range m.types {
			types = append(types, apimaster.TopicType{Name: n, Type: t})
		}
		return apimaster.ResponseGetTopicTypes{Code: 1, Types: types}
	case "registerPublisher", "registerSubscriber":
		var q apimaster.RequestRegister
		if r.Decode(&q) != nil {
			return xmlrpc.ErrorRes{}
		}
		table := m.subs
		if r.Method == "registerPublisher" {
			table = m.pubs
		}
		if table[q.Topic] == nil {
			table[q.Topic] = map[string]string{}
		}
		table[q.Topic][q.CallerID] = q.CallerURL
		if old := m.types[q.Topic]; old == "" || old == "*" {
			m.types[q.Topic] = q.TopicType
		}
		if r.Method == "registerPublisher" {
			m.notify(q.Topic)
			return apimaster.ResponseRegister{Code: 1, URIs: uris(m.subs[q.Topic])}
		}
		return apimaster.ResponseRegister{Code: 1, URIs: uris(m.pubs[q.Topic])}
	case "registerService":
		var q apimaster.RequestRegisterService
		if r.Decode(&q) != nil {
			return xmlrpc.ErrorRes{}
		}
		m.services[q.Service] = map[string]string{q.CallerID: q.ServiceURL}
		return apimaster.ResponseRegisterService{Code: 1}
	case "unregisterService":
		var q apimaster.RequestUnregisterService
		if r.Decode(&q) != nil {
			return xmlrpc.ErrorRes{}
		}
		delete(m.services, q.Service)
		return apimaster.ResponseServiceUnregister{Code: 1, NumUnregistered: 1}
	case "lookupService":
		var q apimaster.RequestLookup
		if r.Decode(&q) != nil {
			return xmlrpc.ErrorRes{}
		}
		for _, u := range m.services[q.Name] {
			return apimaster.ResponseLookup{Code: 1, URL: u}
		}
		return apimaster.ResponseLookup{Code: 0, StatusMessage: "no provider"}
	case "unregisterPublisher", "unregisterSubscriber":
		var q apimaster.RequestUnregister
		if r.Decode(&q) != nil {
			return xmlrpc.ErrorRes{}
		}
		if r.Method == "unregisterPublisher" {
			delete(m.pubs[q.Topic], q.CallerID)
			m.notify(q.Topic)
		} else {
			delete(m.subs[q.Topic], q.CallerID)
		}
		return apimaster.ResponseUnregister{Code: 1, NumUnregistered: 1}
	}
	return xmlrpc.ErrorRes{}
}

// notify tells the subscribers of a topic who publishes it; m.mu is held.
func (m *Master) notify(topic string) {
	list := uris(m.pubs[topic])
	for _, u := range m.subs[topic] {
		p, err := url.Parse(u)
		if err != nil {
			continue
		}
		m.calls.Go(func() { _ = apislave.NewClient(p.Host, "/master", m.http).PublisherUpdate(topic, list) })
	}
}
