package ros2

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestOptionsFromEnv(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "cyclone.xml")
	if err := os.WriteFile(file, []byte(`<?xml version="1.0" encoding="UTF-8" ?>
<!-- a comment with <tags> and 'quotes -->
<CycloneDDS xmlns="https://cdds.io/config" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:schemaLocation="https://cdds.io/config https://x/y.xsd">
    <Domain Id="any">
        <General>
            <Interfaces>
                <NetworkInterface name="lo" priority="default" multicast="default" />
                <NetworkInterface address="10.1.2.3"/>
                <NetworkInterface autodetermine="true" name="zzz0"/>
                <NetworkInterface name="surely_not_there0" presence_required="false"/>
            </Interfaces>
            <AllowMulticast>false</AllowMulticast>
            <MaxMessageSize>65500B</MaxMessageSize>
        </General>
        <Internal><SocketReceiveBufferSize min="10MB"/></Internal>
        <Discovery>
            <ParticipantIndex>auto</ParticipantIndex>
            <Peers><Peer Address="localhost"/><Peer address="10.0.0.7:7412"/><Peer Address="239.255.0.1"/><Peer Address="udp/10.0.0.8"/></Peers>
        </Discovery>
    </Domain>
</CycloneDDS>`), 0o600); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(dir, "big.xml")
	if err := os.WriteFile(big, make([]byte, maxCycloneFile+1), 0o600); err != nil {
		t.Fatal(err)
	}
	fromFile := Options{Interfaces: []string{"lo", "10.1.2.3"}, NoMulticast: true, Peers: []string{"localhost", "10.0.0.7:7412", "10.0.0.8"}}
	const gone = "surely_not_there0"

	cases := []struct {
		name string
		env  string // NAME=value, one a line
		want Options
		warn []string // part of each warning, in order
		err  string   // part of the error
	}{
		{name: "nothing set"},
		{name: "domain", env: "ROS_DOMAIN_ID=42", want: Options{Domain: 42}},
		{name: "domain not a number", env: "ROS_DOMAIN_ID=x", err: "ROS_DOMAIN_ID=x"},
		{name: "domain negative", env: "ROS_DOMAIN_ID=-1", err: "ROS_DOMAIN_ID=-1"},
		{name: "domain too large", env: "ROS_DOMAIN_ID=233", err: "0 to 232"},
		{name: "localhost only drops peers", env: "ROS_LOCALHOST_ONLY=1\nROS_STATIC_PEERS=10.0.0.1\nROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET",
			want: Options{Range: RangeLocalhost}, warn: []string{"ROS_STATIC_PEERS"}},
		{name: "localhost only starts with 1", env: "ROS_LOCALHOST_ONLY=1x", want: Options{Range: RangeLocalhost}},
		{name: "localhost only 0", env: "ROS_LOCALHOST_ONLY=0"},
		{name: "range localhost with peers", env: "ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST\nROS_STATIC_PEERS=10.0.0.1;robot.local;;",
			want: Options{Range: RangeLocalhost, Peers: []string{"10.0.0.1", "robot.local"}}},
		{name: "range subnet", env: "ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET\nROS_STATIC_PEERS=a", want: Options{Peers: []string{"a"}}},
		{name: "range off drops peers", env: "ROS_AUTOMATIC_DISCOVERY_RANGE=OFF\nROS_STATIC_PEERS=a", want: Options{Range: RangeOff}},
		{name: "range system default", env: "ROS_AUTOMATIC_DISCOVERY_RANGE=SYSTEM_DEFAULT\nROS_STATIC_PEERS=a", want: Options{Range: RangeSystemDefault}},
		{name: "range unknown is localhost", env: "ROS_AUTOMATIC_DISCOVERY_RANGE=subnet", want: Options{Range: RangeLocalhost}, warn: []string{"RANGE=subnet"}},
		{name: "peer too long", env: "ROS_STATIC_PEERS=a;" + strings.Repeat("x", 256) + ";b", want: Options{Peers: []string{"a", "b"}}, warn: []string{"longer than 255"}},

		{name: "zenoh", env: "RMW_IMPLEMENTATION=rmw_zenoh_cpp", err: "RMW_IMPLEMENTATION=rmw_zenoh_cpp"},
		{name: "iceoryx", env: "RMW_IMPLEMENTATION=rmw_iceoryx_cpp", err: "shared memory"},
		{name: "cyclone", env: "RMW_IMPLEMENTATION=rmw_cyclonedds_cpp"},
		{name: "unknown middleware", env: "RMW_IMPLEMENTATION=rmw_gurumdds_cpp", warn: []string{"rmw_gurumdds_cpp"}},
		{name: "security enforced", env: "ROS_SECURITY_ENABLE=true\nROS_SECURITY_STRATEGY=Enforce\nROS_SECURITY_ENCLAVE_OVERRIDE=/robot", err: "(/robot)"},
		{name: "security permissive", env: "ROS_SECURITY_ENABLE=true\nROS_SECURITY_KEYSTORE=/keys", warn: []string{"keystore /keys"}},
		{name: "security off", env: "ROS_SECURITY_ENABLE=false\nROS_SECURITY_STRATEGY=Enforce"},
		{name: "discovery server", env: "ROS_DISCOVERY_SERVER=10.0.0.1:11811", err: "ROS_DISCOVERY_SERVER=10.0.0.1:11811"},
		{name: "discovery server with cyclone", env: "ROS_DISCOVERY_SERVER=10.0.0.1\nRMW_IMPLEMENTATION=rmw_cyclonedds_cpp\nFASTDDS_BUILTIN_TRANSPORTS=SHM"},
		{name: "shared memory", env: "FASTDDS_BUILTIN_TRANSPORTS=SHM", warn: []string{"shared memory only"}},
		{name: "large data", env: "FASTDDS_BUILTIN_TRANSPORTS=LARGE_DATA?max_msg_size=1MB", warn: []string{"TCP"}},
		{name: "udp", env: "FASTDDS_BUILTIN_TRANSPORTS=UDPv4"},
		{name: "udp 6", env: "FASTDDS_BUILTIN_TRANSPORTS=UDPv6", warn: []string{"UDPv6"}},
		{name: "profiles", env: "FASTRTPS_DEFAULT_PROFILES_FILE=/p.xml", warn: []string{"FASTRTPS_DEFAULT_PROFILES_FILE=/p.xml"}},

		{name: "cyclone file", env: "CYCLONEDDS_URI=file://" + file, want: fromFile, warn: []string{gone}},
		{name: "cyclone bare path", env: "CYCLONEDDS_URI=" + file, want: fromFile, warn: []string{gone}},
		{name: "cyclone path with variable", env: "CYCLONEDDS_URI=file://${DIR}/cyclone.xml\nDIR=" + dir, want: fromFile, warn: []string{gone}},
		{name: "cyclone file missing", env: "CYCLONEDDS_URI=file:///nowhere/c.xml", err: "/nowhere/c.xml"},
		{name: "cyclone file too big", env: "CYCLONEDDS_URI=" + big, err: "more than"},
		{name: "cyclone with fast", env: "CYCLONEDDS_URI=file:///nowhere/c.xml\nRMW_IMPLEMENTATION=rmw_fastrtps_cpp", warn: []string{"CYCLONEDDS_URI is ignored"}},
		{name: "cyclone list: later wins, lists add up", env: "CYCLONEDDS_URI=" + file +
			",<CycloneDDS><Domain><General><AllowMulticast>spdp</></></></>, <Discovery><Peers><Peer Address='a>b'/><Peer Address=\"c\"/></Peers></Discovery>",
			want: Options{Interfaces: fromFile.Interfaces, Peers: append(fromFile.Peers[:3:3], "a>b", "c")}, warn: []string{gone}},
		{name: "cyclone old interface address", env: "CYCLONEDDS_URI=<CycloneDDS><Domain id=\"any\"><General><NetworkInterfaceAddress>eth0, wlan0</NetworkInterfaceAddress></General></Domain></CycloneDDS>",
			want: Options{Interfaces: []string{"eth0", "wlan0"}}},
		{name: "cyclone auto", env: "CYCLONEDDS_URI=<General><NetworkInterfaceAddress>AUTO</NetworkInterfaceAddress><AllowMulticast>true</AllowMulticast></General>"},
		{name: "cyclone asm only", env: "CYCLONEDDS_URI=<General><AllowMulticast>asm</AllowMulticast></General>", want: Options{NoMulticast: true}},
		{name: "cyclone multicast off on all interfaces", env: "CYCLONEDDS_URI=<General><Interfaces><NetworkInterface name='lo' multicast='false'/></Interfaces></General>",
			want: Options{NoMulticast: true, Interfaces: []string{"lo"}}},
		{name: "cyclone multicast off on one interface", env: "CYCLONEDDS_URI=<General><Interfaces><NetworkInterface name='lo' multicast='false'/><NetworkInterface name='eth0'/></Interfaces></General>",
			want: Options{Interfaces: []string{"lo", "eth0"}}},
		{name: "cyclone domain", env: "CYCLONEDDS_URI=<CycloneDDS><Domain id='any'><General><AllowMulticast>false</AllowMulticast></General></Domain><Domain Id='5'><Discovery><Peers><Peer address='a'/></Peers></Discovery></Domain><Domain Id='6'><Discovery><Peers><Peer address='b'/></Peers></Discovery></Domain></CycloneDDS>",
			want: Options{Domain: 5, NoMulticast: true, Peers: []string{"a"}}, warn: []string{"domain 5"}},
		{name: "cyclone domain overruled", env: "ROS_DOMAIN_ID=6\nCYCLONEDDS_URI=<CycloneDDS><Domain Id='5'><Discovery><Peers><Peer address='a'/></Peers></Discovery></Domain><Domain><Id>6</Id><Discovery><Peers><Peer address='b'/></Peers></Discovery></Domain></CycloneDDS>",
			want: Options{Domain: 6, Peers: []string{"b"}}},
		{name: "cyclone external domain", env: "CYCLONEDDS_URI=<Discovery><ExternalDomainId>7</ExternalDomainId></Discovery><General><AllowMulticast>false</AllowMulticast></General>",
			want: Options{Domain: 7, NoMulticast: true}, warn: []string{"domain 7"}},
		{name: "cyclone bad domain", env: "CYCLONEDDS_URI=<Domain Id='seven'><General><AllowMulticast>false</AllowMulticast></General></Domain>", warn: []string{`"seven"`}},
		{name: "cyclone variables", env: "IFACE=eth7\nCYCLONEDDS_URI=<General><NetworkInterfaceAddress>${IFACE}</NetworkInterfaceAddress></General><Discovery><Peers><Peer Address=\"${PEER:-10.0.0.9}\"/></Peers></Discovery>",
			want: Options{Interfaces: []string{"eth7"}, Peers: []string{"10.0.0.9"}}},
		{name: "cyclone what we cannot do", env: "CYCLONEDDS_URI=<Discovery><Tag>t</Tag><SPDPMulticastAddress>239.1.1.1</SPDPMulticastAddress><Ports><Base>7500</Base></Ports><Peers><Peer Address='fe80::1'/></Peers></Discovery><General><Transport>tcp</Transport></General><TCP><Enable>true</Enable></TCP><Security/>",
			warn: []string{"Discovery/Tag t", "239.1.1.1", "Ports", "fe80::1", "General/Transport tcp", "TCP/Enable", "Security"}},
		{name: "cyclone what we may ignore", env: "CYCLONEDDS_URI=<Tracing><Verbosity>finest</Verbosity></Tracing><SharedMemory><Enable>true</Enable></SharedMemory>"},
		{name: "cyclone unclosed", env: "CYCLONEDDS_URI=<General><AllowMulticast>false</AllowMulticast>", err: "CYCLONEDDS_URI: element"},
		{name: "cyclone wrong closing", env: "CYCLONEDDS_URI=<General><A>false</B></General>", err: "CYCLONEDDS_URI"},
		{name: "cyclone stray closing", env: "CYCLONEDDS_URI=<A></A></B>", err: "closes nothing"},
		{name: "cyclone endless tag", env: "CYCLONEDDS_URI=<General x='", err: "does not end"},
		{name: "cyclone endless comment", env: "CYCLONEDDS_URI=<!-- x", err: "does not end"},
		{name: "cyclone too deep", env: "CYCLONEDDS_URI=" + strings.Repeat("<a>", 50) + strings.Repeat("</a>", 50), err: "nested deeper"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			vars := map[string]string{}
			for line := range strings.SplitSeq(c.env, "\n") {
				name, value, _ := strings.Cut(line, "=")
				vars[name] = value
			}
			o, warnings, err := OptionsFromEnv(func(name string) string { return vars[name] })
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("error is %v, want %q", err, c.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(o, c.want) {
				t.Errorf("options are %+v, want %+v", o, c.want)
			}
			if len(warnings) != len(c.warn) {
				t.Fatalf("warnings are %q, want %q", warnings, c.warn)
			}
			for i, w := range c.warn {
				if !strings.Contains(warnings[i], w) {
					t.Errorf("warning %q does not name %q", warnings[i], w)
				}
			}
		})
	}
}

func FuzzCycloneURI(f *testing.F) {
	f.Add("<CycloneDDS><Domain id='any'><General><AllowMulticast>false</></></></>")
	f.Add("<a b='>'/>,<!-- x --><![CDATA[y]]>")
	f.Add("<>")
	f.Fuzz(func(t *testing.T, uri string) {
		if !strings.HasPrefix(uri, "<") {
			return // no file names
		}
		_, _, _ = OptionsFromEnv(func(name string) string {
			if name == "CYCLONEDDS_URI" {
				return uri
			}
			return ""
		})
	})
}
