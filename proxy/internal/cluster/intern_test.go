package cluster_test

import (
	"reflect"
	"testing"

	"github.com/dragoman-proxy/dragoman/proxy/internal/cluster"
	"github.com/dragoman-proxy/dragoman/proxy/internal/event"
	"github.com/dragoman-proxy/dragoman/proxy/internal/pool"
)

// Clusters share options only if they are alike in all of them.
func TestOptionsThatDifferAreNotShared(t *testing.T) {
	var plain pool.Options
	if !cluster.Shares(plain, plain) {
		t.Fatal("equal options are not shared")
	}
	for i := range reflect.TypeFor[pool.Options]().NumField() {
		name := reflect.TypeFor[pool.Options]().Field(i).Name
		if name == "H1" || name == "H2" { // they are shared by what they are made of
			continue
		}
		other := plain
		f := reflect.ValueOf(&other).Elem().Field(i)
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("x")
		case reflect.Float64:
			f.SetFloat(2)
		case reflect.Int64:
			f.SetInt(3)
		case reflect.Uint8, reflect.Uint32:
			f.SetUint(1)
		case reflect.Interface:
			f.Set(reflect.ValueOf(&name))
		case reflect.Struct:
			f.FieldByName("Path").SetString("/x")
		case reflect.Slice:
			f.Set(reflect.ValueOf([]event.SocketOption{{Level: 1}}))
		default:
			t.Fatalf("%s: this test cannot set a %s", name, f.Kind())
		}
		if cluster.Shares(plain, other) {
			t.Errorf("options that differ in %s are shared", name)
		}
	}
}
