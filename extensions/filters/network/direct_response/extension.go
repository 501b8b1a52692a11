// Package direct_response is the network filter that answers every connection with the same bytes and closes it.
//
// A filter belongs to one connection on its worker. It ends its chain and reads nothing.
package direct_response //nolint:revive // Envoy's name

import (
	"errors"
	"os"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	directv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/direct_response/v3"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-proxy/dragoman/api/buffer"
	"github.com/dragoman-proxy/dragoman/api/ext"
	"github.com/dragoman-proxy/dragoman/api/network"
)

// Extension is the filter's entry in the list of extensions.
var Extension = ext.NetworkFilter{
	Info: ext.Info{
		Name:     "envoy.filters.network.direct_response",
		TypeURLs: []string{"envoy.extensions.filters.network.direct_response.v3.Config"},
		Posture:  ext.UnknownPosture,
		Refused:  []string{"!response.environment_variable"},
	},
	New: func(cfg proto.Message, _ ext.FactoryContext) (func(d network.Dispatcher) network.ReadFilter, error) {
		answer, err := read(cfg.(*directv3.Config).GetResponse())
		if err != nil {
			return nil, err
		}
		return func(network.Dispatcher) network.ReadFilter { return &filter{answer: answer} }, nil
	},
	Terminal: true,
}

// read returns the bytes of a data source.
func read(d *corev3.DataSource) ([]byte, error) {
	switch x := d.GetSpecifier().(type) {
	case nil:
		return nil, nil
	case *corev3.DataSource_InlineString:
		return []byte(x.InlineString), nil
	case *corev3.DataSource_InlineBytes:
		return x.InlineBytes, nil
	case *corev3.DataSource_Filename:
		return os.ReadFile(x.Filename)
	}
	return nil, errors.New("response: is not supported yet")
}

type filter struct{ answer []byte }

// OnNewConnection implements network.ReadFilter.
func (f *filter) OnNewConnection(cb network.ReadCallbacks) network.FilterStatus {
	c := cb.Connection()
	c.Info().SetEnd().Details = "direct_response"
	var b buffer.Buffer
	b.Borrow(f.answer)
	c.Write(&b, false)
	c.Close(network.FlushWrite, "")
	return network.StopIteration
}

// OnData implements network.ReadFilter.
func (f *filter) OnData(data *buffer.Buffer, _ bool) network.FilterStatus {
	data.Reset()
	return network.StopIteration
}

// OnEvent implements network.ReadFilter.
func (f *filter) OnEvent(network.ConnEvent) {}
