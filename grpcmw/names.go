package grpcmw

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/holdfast-go/holdfast/call"
	"github.com/holdfast-go/holdfast/internal/wire"
	"github.com/holdfast-go/holdfast/internal/wire/grpcwire"
)

// protocol is how gRPC names methods, with what this program knows of them.
var protocol = func() wire.Protocol {
	p := grpcwire.Protocol()
	p.Parse = parseName
	p.Declared = declaredSafety
	p.Find = find
	p.Routes = func([]string) any { return newRoutes() }
	p.Waits = wire.Waits{
		Attempt:      "to the end of a unary RPC, for a stream until it is open",
		FirstMessage: "the first message of a stream, from the start of its attempt",
		Rest:         "each wait for a message of an open stream",
	}
	return p
}()

// parseName brings a name of the table into canonical form. A method or service
// that is registered here must be one.
func parseName(name string) (key string, err error) {
	if key, err = grpcwire.Parse(name); err != nil {
		return "", err
	}
	if service := grpcwire.ServiceOf(key); service != "" {
		return key, checkMethod(service, key[len(service)+2:])
	}
	return key, checkService(key)
}

// checkMethod returns an error if the service is known and has no such method.
// A service that is not registered proves nothing.
func checkMethod(service, method string) error {
	s, ok := lookUp(service).(protoreflect.ServiceDescriptor)
	if !ok || s.Methods().ByName(protoreflect.Name(method)) != nil {
		return nil
	}
	names := make([]string, s.Methods().Len())
	for i := range names {
		names[i] = string(s.Methods().Get(i).Name())
	}
	slices.Sort(names)
	return fmt.Errorf("service %s has no method %s; it has %s", service, method, strings.Join(names, ", "))
}

// checkService returns an error if the name is known to be something else.
func checkService(name string) error {
	switch d := lookUp(name).(type) {
	case nil, protoreflect.ServiceDescriptor:
		return nil
	case protoreflect.MethodDescriptor:
		return fmt.Errorf("is a method, whose name is written /%s/%s", d.Parent().FullName(), d.Name())
	default:
		return errors.New("is the name of a protobuf type that is no service")
	}
}

// lookUp returns what is registered under a name, nil if nothing is.
func lookUp(name string) protoreflect.Descriptor {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
	if err != nil {
		return nil
	}
	return d
}

// find reads a method as a user names it for Kit.Explain.
func find(method string, has func(key string) bool, _ any) (name, key string, declared call.Safety, ok bool) {
	name, err := parseName(method)
	if err != nil || !grpcwire.IsMethod(name) {
		return "", "", call.SafetyUnknown, false
	}
	for _, k := range []string{name, grpcwire.ServiceOf(name)} {
		if has(k) {
			key = k
			break
		}
	}
	return name, key, declaredSafety(name), true
}
